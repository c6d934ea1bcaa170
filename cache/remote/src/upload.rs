//! Uploads: blobs first, then the records that name them.

use crate::backend::Backend;
use crate::client::Client;
use crate::failure::{Attempt, Failure};
use crate::object_name::object_name;
use crate::signature;
use bytes::Bytes;
use cache::{BlobRef, RecordId, Result, StoredAction, StoredMemo, checksummed, parallel};
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The number of concurrent transfers.
pub(crate) const TRANSFERS: usize = 8;

/// The result of an upload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PushReport {
    /// The number of requested records that are now complete in the remote.
    pub records: u64,
    /// The number of these records that existed in the remote before.
    pub there_before: u64,
    /// The number of records written by a signer who is not trusted here; they are left as they are.
    pub of_others: u64,
    /// The number of blobs uploaded.
    pub blobs: u64,
    /// The total size of the uploaded blobs in bytes.
    pub bytes: u64,
    /// The number of records that lack a blob in the local store, and were skipped.
    pub incomplete: u64,
    /// The number of records whose upload failed.
    pub failed: u64,
    /// The incomplete and failed records.
    #[serde(skip)]
    pub left: Vec<RecordId>,
}

/// A record of the local store with the blobs that it names.
struct Ready {
    folder: &'static str,
    name: String,
    /// The bytes of the record's file.
    record: Vec<u8>,
    blobs: Vec<BlobRef>,
    id: RecordId,
}

/// Uploads records with the blobs that they name, until `stop` is set. Blobs and records that the remote
/// holds are skipped; a record that another key signed is never replaced. `plan` is called with the number of
/// bytes to upload.
pub(crate) fn upload(
    client: &Client,
    records: &[RecordId],
    stop: &AtomicBool,
    plan: impl Fn(u64),
) -> Result<PushReport> {
    let mut report = PushReport::default();
    let mut ready = Vec::new();
    for record in records {
        match read(client, *record)? {
            Some(record) => ready.push(record),
            None => {
                report.incomplete += 1;
                report.left.push(*record);
            }
        }
    }
    if ready.is_empty() {
        return Ok(report);
    }
    let backend = match client.writable() {
        Ok(backend) => backend,
        Err(failure) => {
            warn_not_uploaded(client, failure)?;
            report.failed = ready.len() as u64;
            report.left.extend(ready.iter().map(|record| record.id));
            return Ok(report);
        }
    };
    let blobs: Vec<BlobRef> = ready.iter().flat_map(|record| record.blobs.iter().copied()).collect();
    let sent = upload_blobs(client, &blobs, stop, plan)?;
    report.blobs = sent.count;
    report.bytes = sent.bytes;
    ready.retain(|record| {
        match record.blobs.iter().find(|blob| sent.absent.contains(blob)) {
            Some(blob) if !client.store.has_here(*blob) => report.incomplete += 1,
            Some(_) => report.failed += 1,
            None => return true,
        }
        report.left.push(record.id);
        false
    });
    let written = parallel::map_with_threads(&ready, TRANSFERS, |record| {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let name = object_name(record.folder, &record.name);
        let write = || {
            match earlier(client, record, &name)? {
                Earlier::Replaceable => {}
                standing => return Ok(standing),
            }
            let bytes = Bytes::from(signature::sign(
                &record.record,
                record.folder,
                &record.name,
                &client.settings,
            ));
            client.writes.call(|| backend.write(&name, bytes, &|_| true))?;
            Ok(Earlier::Replaceable)
        };
        match write() {
            Ok(earlier) => Ok(Some(earlier)),
            Err(failure) => warn_not_uploaded(client, failure).map(|()| None),
        }
    })?;
    for (record, written) in ready.iter().zip(written) {
        match written {
            Some(Earlier::OfOther) => report.of_others += 1,
            Some(earlier) => {
                report.records += 1;
                report.there_before += u64::from(earlier == Earlier::Standing);
            }
            None => {
                report.failed += 1;
                report.left.push(record.id);
            }
        }
    }
    Ok(report)
}

/// The result of an upload of blobs.
#[derive(Default)]
pub(crate) struct SentBlobs {
    /// The number of blobs uploaded.
    count: u64,
    /// Their total size in bytes.
    bytes: u64,
    /// The blobs that are not in the remote now.
    pub absent: HashSet<BlobRef>,
}

/// Uploads those blobs that the remote lacks, until `stop` is set. `plan` is called with the number of bytes.
pub(crate) fn upload_blobs(
    client: &Client,
    blobs: &[BlobRef],
    stop: &AtomicBool,
    plan: impl Fn(u64),
) -> Result<SentBlobs> {
    let unique: BTreeMap<_, _> = blobs.iter().map(|blob| (blob.blob, *blob)).collect();
    let blobs: Vec<BlobRef> = unique.into_values().collect();
    // An empty remote is initialised even if there is nothing to upload: others may write to it next.
    let backend = match client.writable() {
        Ok(backend) => backend,
        Err(failure) => {
            warn_not_uploaded(client, failure)?;
            return Ok(SentBlobs {
                absent: blobs.into_iter().collect(),
                ..SentBlobs::default()
            });
        }
    };
    let found = client.contains_current(&blobs)?;
    let absent = blobs.iter().zip(&found).filter(|(_, found)| !**found);
    let absent: Vec<BlobRef> = absent.map(|(blob, _)| *blob).collect();
    plan(absent.iter().map(|blob| blob.size).sum());
    let (count, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
    let failed = parallel::map_with_threads(&absent, TRANSFERS, |blob| {
        if stop.load(Ordering::Relaxed) || !upload_blob(client, backend, *blob, stop)? {
            return Ok(Some(*blob));
        }
        count.fetch_add(1, Ordering::Relaxed);
        bytes.fetch_add(blob.size, Ordering::Relaxed);
        Ok(None)
    })?;
    Ok(SentBlobs {
        count: count.into_inner(),
        bytes: bytes.into_inner(),
        absent: failed.into_iter().flatten().collect(),
    })
}

/// The object that is stored under a record's name before its upload.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Earlier {
    /// There is none, or one that may be replaced: damaged, without a valid signature, or an earlier result
    /// of this signer.
    Replaceable,
    /// An equal result of this signer, or any result of another trusted signer.
    Standing,
    /// A record of a signer who is not trusted here.
    OfOther,
}

fn earlier(client: &Client, ready: &Ready, path: &str) -> Attempt<Earlier> {
    let Some(bytes) = client.object(path)? else {
        return Ok(Earlier::Replaceable);
    };
    let settings = &client.settings;
    let signer = signature::signer(&bytes, ready.folder, &ready.name).ok();
    if let Some(key) = signer.filter(|key| !settings.is_own(key)) {
        if settings.trusts(&key) {
            return Ok(Earlier::Standing);
        }
        client.warnings.add("record of another signer", || {
            format!(
                "{path} in the remote {} was signed by the unknown key {} and is not replaced\n   hint: if \
                 its owner is trusted, add \
                 `{key}` to `trusted_keys:` of the configuration; otherwise use another prefix of the bucket",
                client.name,
                key.fingerprint()
            )
        });
        return Ok(Earlier::OfOther);
    }
    let is_signed_as_it_would_be = signer.is_some() == settings.sign_key.is_some();
    let is_same = match ready.id {
        RecordId::Action(key) => {
            let here = checksummed::decode::<StoredAction>(&ready.record);
            let there = signature::action(&bytes, key, settings).ok();
            there
                .zip(here)
                .is_some_and(|(there, here)| there.record.outputs == here.record.outputs)
        }
        RecordId::Memo(key) => {
            signature::memo(&bytes, key, settings).is_ok_and(|there| ready.blobs == [there.value])
        }
    };
    Ok(if is_same && is_signed_as_it_would_be {
        Earlier::Standing
    } else {
        Earlier::Replaceable
    })
}

/// Uploads a blob. Returns true if it is in the remote afterwards; a blob that is missing or damaged in the
/// local store is not uploaded.
fn upload_blob(client: &Client, backend: &dyn Backend, blob: BlobRef, stop: &AtomicBool) -> Result<bool> {
    // Opening the blob verifies its bytes, so that damage is not uploaded.
    let bytes = match client.store.local_blob(blob.blob) {
        Ok(bytes) if bytes.len() as u64 == blob.size => Bytes::from_owner(bytes),
        Ok(_) => return Ok(false),
        Err(err) if err.is_healed_by_recomputing() => return Ok(false),
        Err(err) => return Err(err),
    };
    let name = object_name("blobs", &blob.blob.to_hex());
    let on_part = |len| {
        client.stats.moved(len);
        !stop.load(Ordering::Relaxed)
    };
    let sent = client.writes.call(|| backend.write(&name, bytes, &on_part));
    match sent {
        Ok(()) => {
            client.stats.uploaded(blob.size);
            client.known().add(blob);
            Ok(true)
        }
        Err(failure) => warn_not_uploaded(client, failure).map(|()| false),
    }
}

pub(crate) fn warn_not_uploaded(client: &Client, failure: Failure) -> Result<()> {
    let message = match failure {
        Failure::Local(err) => return Err(err),
        Failure::CircuitOpen | Failure::Stopped => return Ok(()),
        Failure::NotFound => "it does not accept the object".to_owned(),
        Failure::Permanent { message, .. } | Failure::Transient { message, .. } => message,
    };
    client.warnings.add("not uploaded", || {
        format!(
            "the upload to the remote {} is incomplete: {}\n   hint: `runner cache push` uploads the rest; \
             `read_only: true` in the configuration turns uploads off",
            client.name,
            client.redact(&message)
        )
    });
    Ok(())
}

/// Reads a record of the local store, and the blobs that it names; `None` if it is missing or damaged.
fn read(client: &Client, id: RecordId) -> Result<Option<Ready>> {
    let Some(record) = client.store.record_bytes(id)? else {
        return Ok(None);
    };
    let (folder, name, blobs) = match id {
        RecordId::Action(key) => {
            let stored =
                checksummed::decode::<StoredAction>(&record).filter(|stored| stored.record.key == key);
            let blobs = stored.map(|stored| {
                // A missing log does not make the action incomplete.
                let log = stored.record.log.filter(|log| client.store.has_here(*log));
                stored.blobs().chain(log).collect()
            });
            ("actions", key.to_hex(), blobs)
        }
        RecordId::Memo(key) => {
            let stored = checksummed::decode::<StoredMemo>(&record).filter(|stored| stored.key == key);
            ("memos", key.to_hex(), stored.map(|stored| vec![stored.value]))
        }
    };
    Ok(blobs.map(|blobs| Ready {
        folder,
        name,
        record,
        blobs,
        id,
    }))
}
