//! `push` and `pull`: transfers of records with the blobs that they name, by command.

use crate::fetch::fetch;
use crate::remote::Remote;
use crate::upload::{PushReport, TRANSFERS, upload};
use cache::{BlobRef, Error, RecordId, Result, Upstream as _, parallel};
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

/// The result of [`Remote::pull`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PullReport {
    /// The number of requested records that are now complete in the local store.
    pub records: u64,
    /// The number of blobs fetched.
    pub blobs: u64,
    /// The total size of the fetched blobs in bytes.
    pub bytes: u64,
    /// The number of records that neither the local store nor the remote holds with all their blobs.
    pub unknown: u64,
    /// The number of records with a blob that could not be fetched.
    pub failed: u64,
}

impl Remote {
    /// The ids of all records of the remote; `None` if the remote cannot list them, or does not answer.
    pub fn records(&self) -> Result<Option<Vec<RecordId>>> {
        let client = self.client();
        if !client.can_list() {
            return Ok(None);
        }
        let (actions, memos) = (client.list("actions", usize::MAX)?, client.list("memos", usize::MAX)?);
        if !client.is_available() {
            return Ok(None);
        }
        let mut records = Vec::new();
        for name in actions.unwrap_or_default() {
            records.extend(name.parse().map(RecordId::Action));
        }
        for name in memos.unwrap_or_default() {
            records.extend(name.parse().map(RecordId::Memo));
        }
        Ok(Some(records))
    }

    /// Uploads records with the blobs that they name, until `stop` is set. Objects that the remote already
    /// holds are skipped, and a record that another key signed is never replaced. `plan` is called with the
    /// number of bytes to upload.
    ///
    /// # Errors
    /// When the remote is read-only, or the local store cannot be read.
    pub fn push(&self, records: &[RecordId], stop: &AtomicBool, plan: impl Fn(u64)) -> Result<PushReport> {
        if self.client().is_read_only() {
            return Err(Error::remote(format!("the remote {}", self.name()), "it is read-only"));
        }
        upload(self.client(), records, stop, plan)
    }

    /// Fetches records with the blobs that they name, until `stop` is set. `plan` is called with the number
    /// of bytes to fetch.
    pub fn pull(&self, records: &[RecordId], stop: &AtomicBool, plan: impl Fn(u64)) -> Result<PullReport> {
        let local = &self.client().store;
        let store = self.attach(local.clone());
        let mut report = PullReport::default();
        let found = parallel::map_with_threads(records, TRANSFERS, |record| {
            Ok(match record {
                RecordId::Action(key) => store
                    .hit(*key)?
                    .map(|hit| hit.blobs().chain(hit.log).collect::<Vec<_>>()),
                RecordId::Memo(key) => store.memo(*key)?.map(|value| vec![value]),
            })
        })?;
        report.unknown = found.iter().filter(|blobs| blobs.is_none()).count() as u64;
        let found: Vec<Vec<BlobRef>> = found.into_iter().flatten().collect();
        let unique: BTreeMap<_, BlobRef> = found.iter().flatten().map(|blob| (blob.blob, *blob)).collect();
        let absent: Vec<BlobRef> = unique.into_values().filter(|blob| !local.has_here(*blob)).collect();
        plan(absent.iter().map(|blob| blob.size).sum());
        let before = self.stats();
        let failed = parallel::map_with_threads(&absent, TRANSFERS, |blob| {
            if stop.load(Ordering::Relaxed) {
                return Ok(Some(*blob));
            }
            match fetch(self.client(), blob.blob) {
                Ok(true) => Ok(None),
                Ok(false) => Ok(Some(*blob)),
                Err(err) if err.is_healed_by_recomputing() => Ok(Some(*blob)),
                Err(err) => Err(err),
            }
        })?;
        let failed: HashSet<BlobRef> = failed.into_iter().flatten().collect();
        let after = self.stats();
        report.blobs = after.fetched - before.fetched;
        report.bytes = after.fetched_bytes - before.fetched_bytes;
        let has_failed = |blobs: &&Vec<BlobRef>| blobs.iter().any(|blob| failed.contains(blob));
        report.failed = found.iter().filter(has_failed).count() as u64;
        report.records = found.len() as u64 - report.failed;
        Ok(report)
    }
}
