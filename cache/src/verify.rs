//! Verification: hashing blobs and checking records again.

use crate::blob::{self, BlobRef};
use crate::checksummed::{self, Checksummed};
use crate::digest::{ActionKey, BlobDigest, MemoKey};
use crate::error::{Error, Result};
use crate::record::{StoredAction, StoredMemo};
use crate::regular_file::{Opened, open_own};
use crate::store::Store;
use crate::{listing, parallel};
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::Seek as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// The size in bytes from which one blob is hashed by several threads.
const BIG: u64 = 64 << 20;

/// The progress of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct VerifyProgress {
    /// Bytes hashed.
    pub done: u64,
    /// Bytes to hash.
    pub total: u64,
}

/// The findings of a verification. Damaged files have been moved to `damaged/`, and the records that name
/// them removed, so that their actions run again when they are needed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// Blobs hashed.
    pub blobs: u64,
    /// Bytes hashed.
    pub bytes: u64,
    /// Action records read.
    pub actions: u64,
    /// Memos read.
    pub memos: u64,
    /// Blobs whose bytes do not match their digest.
    pub damaged: Vec<BlobDigest>,
    /// Blobs that a record names and that do not exist, apart from the damaged ones.
    pub missing: Vec<BlobDigest>,
    /// Actions whose record was removed: it was damaged or names a blob that does not exist.
    pub actions_removed: Vec<ActionKey>,
    /// Memos whose record was removed: it was damaged or names a blob that does not exist.
    pub memos_removed: Vec<MemoKey>,
}

impl VerifyReport {
    /// True if nothing was damaged or missing.
    pub fn is_clean(&self) -> bool {
        self.damaged.is_empty()
            && self.missing.is_empty()
            && self.actions_removed.is_empty()
            && self.memos_removed.is_empty()
    }
}

impl Store {
    /// Hashes every blob and checks every record, whether or not they were checked before. `on_progress` is
    /// called from several threads. Runs may use the store meanwhile.
    pub fn verify(&self, on_progress: impl Fn(VerifyProgress) + Sync) -> Result<VerifyReport> {
        self.verify_sample(1.0, on_progress)
    }

    /// Verifies the store as [`Store::verify`] does, but hashes only a random share of the blobs, from 0 to
    /// 1: a different sample each time.
    pub fn verify_sample(
        &self,
        share: f64,
        on_progress: impl Fn(VerifyProgress) + Sync,
    ) -> Result<VerifyReport> {
        let _guard = self.guard()?;
        let mut blobs = self.list::<BlobDigest>("blobs")?;
        if share < 1.0 {
            let seed = random_seed();
            let rank = |blob: &listing::Named<BlobDigest>| {
                *seed.clone().update(blob.id.as_bytes()).finalize().as_bytes()
            };
            blobs.sort_by_cached_key(rank);
            blobs.truncate((blobs.len() as f64 * share).ceil() as usize);
        }
        let total = blobs.iter().map(|blob| blob.meta.len()).sum();
        let done = AtomicU64::new(0);
        on_progress(VerifyProgress { done: 0, total });
        let intact = parallel::map(&blobs, |blob| {
            let intact = self.check_file(blob.id, &blob.path)?;
            let len = blob.meta.len();
            on_progress(VerifyProgress {
                done: done.fetch_add(len, Ordering::Relaxed) + len,
                total,
            });
            Ok(intact)
        })?;
        let mut report = VerifyReport {
            blobs: blobs.len() as u64,
            bytes: total,
            damaged: blobs
                .iter()
                .zip(intact)
                .filter(|(_, intact)| !intact)
                .map(|(blob, _)| blob.id)
                .collect(),
            ..VerifyReport::default()
        };
        self.verify_records(&mut report)?;
        Ok(report)
    }

    fn verify_records(&self, report: &mut VerifyReport) -> Result<()> {
        let mut missing = BTreeSet::new();
        let index = self.remote_index();
        let has = |blob: BlobRef| self.has_here(blob) || index.blobs.get(&blob.blob) == Some(&blob.size);
        for action in self.list::<ActionKey>("actions")? {
            report.actions += 1;
            let seen = match checksummed::read::<StoredAction>(&action.path)? {
                Checksummed::Intact(stored, seen) if stored.record.key == action.id => {
                    let lost: Vec<_> = stored.blobs().filter(|blob| !has(*blob)).collect();
                    missing.extend(lost.iter().map(|blob| blob.blob));
                    (!lost.is_empty()).then_some(seen)
                }
                Checksummed::Intact(_, seen) | Checksummed::Damaged(seen) => Some(seen),
                Checksummed::Absent => None,
            };
            if let Some(seen) = seen {
                self.quarantine(&action.path, &seen)?;
                report.actions_removed.push(action.id);
            }
        }
        for memo in self.list::<MemoKey>("memos")? {
            report.memos += 1;
            let seen = match checksummed::read::<StoredMemo>(&memo.path)? {
                Checksummed::Intact(stored, _) if stored.key == memo.id && has(stored.value) => None,
                Checksummed::Intact(stored, seen) => {
                    if stored.key == memo.id {
                        missing.insert(stored.value.blob);
                    }
                    Some(seen)
                }
                Checksummed::Damaged(seen) => Some(seen),
                Checksummed::Absent => None,
            };
            if let Some(seen) = seen {
                self.quarantine(&memo.path, &seen)?;
                report.memos_removed.push(memo.id);
            }
        }
        let damaged: BTreeSet<_> = report.damaged.iter().copied().collect();
        report.missing = missing.difference(&damaged).copied().collect();
        Ok(())
    }

    /// Hashes a blob's file and quarantines it if it is damaged. Returns whether it is intact (or does not
    /// exist).
    pub(crate) fn check_file(&self, digest: BlobDigest, path: &Path) -> Result<bool> {
        let (mut file, len) = match open_own(path)? {
            Opened::Absent => return Ok(true),
            Opened::Regular(file, meta) => (file, meta.len()),
            Opened::Foreign(seen) => {
                self.forget_verified(digest);
                return self.quarantine(path, &seen).map(|()| false);
            }
        };
        let mut hash = || {
            file.rewind().map_err(Error::io("read", path))?;
            blob::hash_file(&mut file, path, len >= BIG, &|| false)
        };
        // An unreadable sector stays unreadable, but a network file system may fail only once.
        let found = match hash() {
            Err(err) if is_io_error(&err) => hash(),
            found => found,
        };
        let intact = match found {
            Ok(found) => found.blob == digest,
            Err(err) if is_io_error(&err) => false,
            Err(err) => return Err(err),
        };
        if intact {
            self.set_verified(digest);
        } else {
            self.forget_verified(digest);
            self.quarantine_open(path, &file)?;
        }
        Ok(intact)
    }
}

fn is_io_error(err: &Error) -> bool {
    let code = Some(rustix::io::Errno::IO.raw_os_error());
    matches!(err, Error::Io { source, .. } if source.raw_os_error() == code)
}

/// A random seed that differs on each call. It does not affect any result.
fn random_seed() -> blake3::Hasher {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let mut hasher = blake3::Hasher::new();
    hasher.update(&now.as_nanos().to_le_bytes());
    hasher.update(&std::process::id().to_le_bytes());
    hasher
}
