//! `push` and `pull`: bringing records with all that they name to the remote, and from it.

use super::client::Remote;
use super::upload::{PushReport, Upload};
use crate::{ActionKey, BlobRef, Error, MemoKey, Result, Store};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

/// What was fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PullReport {
    /// Records that were asked for and are complete here now.
    pub records: u64,
    /// Blobs fetched.
    pub blobs: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Records that neither this store nor the remote has, with all that they name.
    pub unknown: u64,
    /// Records of which a blob could not be fetched.
    pub failed: u64,
}

impl Store {
    fn of_remote(&self) -> Result<&Remote> {
        self.remote.as_ref().ok_or_else(|| Error::Remote {
            remote: "the remote".to_owned(),
            reason: "none is configured".to_owned(),
        })
    }

    /// Every action and memo that this store has a record of.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn records(&self) -> Result<Vec<Upload>> {
        let actions = self.list::<ActionKey>("actions")?;
        let memos = self.list::<MemoKey>("memos")?;
        let actions = actions.into_iter().map(|action| Upload::Action(action.id));
        Ok(actions
            .chain(memos.into_iter().map(|memo| Upload::Memo(memo.id)))
            .collect())
    }

    /// Every action and memo that the remote has a record of; `None` where it cannot say, or does not answer.
    ///
    /// # Errors
    /// When there is no remote, or this machine fails.
    pub fn records_there(&self) -> Result<Option<Vec<Upload>>> {
        let remote = self.of_remote()?;
        if !remote.lists() {
            return Ok(None);
        }
        let (actions, memos) = (remote.list("actions", usize::MAX)?, remote.list("memos", usize::MAX)?);
        if remote.is_aside() {
            return Ok(None);
        }
        let mut records = Vec::new();
        for name in actions.unwrap_or_default() {
            records.extend(name.parse().map(Upload::Action));
        }
        for name in memos.unwrap_or_default() {
            records.extend(name.parse().map(Upload::Memo));
        }
        Ok(Some(records))
    }

    /// Uploads records with all that they name, until `stop` is set; what is there already is left alone. `plan` is told how
    /// many bytes there are to upload.
    ///
    /// # Errors
    /// When there is no remote, it is only read, or this store cannot be read.
    pub fn push(&self, records: &[Upload], stop: &AtomicBool, plan: impl Fn(u64)) -> Result<PushReport> {
        let remote = self.of_remote()?;
        if remote.is_read_only() {
            return Err(Error::Remote {
                remote: format!("the remote {}", remote.shown()),
                reason: "it is only read".to_owned(),
            });
        }
        remote.upload(self, records, false, stop, plan)
    }

    /// Fetches records with all that they name, until `stop` is set. `plan` is told how many bytes there are to fetch.
    ///
    /// # Errors
    /// When there is no remote, or this store cannot be written.
    pub fn pull(&self, records: &[Upload], stop: &AtomicBool, plan: impl Fn(u64)) -> Result<PullReport> {
        let remote = self.of_remote()?;
        let mut report = PullReport::default();
        let found = crate::walk::in_threads(records, super::client::TRANSFERS, |record| {
            Ok(match record {
                Upload::Action(key) => self
                    .hit(*key)?
                    .map(|hit| hit.blobs().chain(hit.log).collect::<Vec<_>>()),
                Upload::Memo(key) => self.memo(*key)?.map(|value| vec![value]),
            })
        })?;
        report.unknown = found.iter().filter(|blobs| blobs.is_none()).count() as u64;
        let found: Vec<Vec<BlobRef>> = found.into_iter().flatten().collect();
        let unique: BTreeMap<_, BlobRef> = found.iter().flatten().map(|blob| (blob.blob, *blob)).collect();
        let blobs: Vec<BlobRef> = unique.into_values().collect();
        plan(
            blobs
                .iter()
                .filter(|blob| !self.has_here(**blob))
                .map(|blob| blob.size)
                .sum(),
        );
        let before = remote.traffic();
        let lost = remote.fetch_all(self, &blobs, stop)?;
        let after = remote.traffic();
        report.blobs = after.fetched - before.fetched;
        report.bytes = after.fetched_bytes - before.fetched_bytes;
        report.failed = found
            .iter()
            .filter(|blobs| blobs.iter().any(|blob| lost.contains(blob)))
            .count() as u64;
        report.records = found.len() as u64 - report.failed;
        Ok(report)
    }
}
