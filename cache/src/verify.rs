//! Reads everything again.

use crate::publish::found;
use crate::record::{StoredAction, StoredMemo};
use crate::remote::elsewhere;
use crate::sealed::{self, Sealed};
use crate::{ActionKey, BlobDigest, BlobRef, Error, MemoKey, Result, Store, blob, walk};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// From this size on, one blob is hashed by several threads.
const BIG: u64 = 64 << 20;

/// How far a verification is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct VerifyProgress {
    /// Bytes hashed.
    pub done: u64,
    /// Bytes to hash.
    pub total: u64,
}

/// What a verification found. What was damaged has been moved to `damaged/`; what was made of it has been forgotten, so
/// that it is computed again when it is needed.
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
    /// Blobs whose bytes are not what their name says.
    pub damaged: Vec<BlobDigest>,
    /// Blobs that a record names but that are not there, apart from the damaged ones.
    pub missing: Vec<BlobDigest>,
    /// Actions forgotten: their record was damaged or lost a blob.
    pub actions_removed: Vec<ActionKey>,
    /// Memos forgotten, likewise.
    pub memos_removed: Vec<MemoKey>,
}

impl VerifyReport {
    /// Whether all was as it should be.
    pub fn is_clean(&self) -> bool {
        self.damaged.is_empty()
            && self.missing.is_empty()
            && self.actions_removed.is_empty()
            && self.memos_removed.is_empty()
    }
}

impl Store {
    /// Hashes every blob and checks every record, whatever was checked before. `on_progress` is called from several
    /// threads. Runs may go on meanwhile.
    ///
    /// # Errors
    /// When the store cannot be read, or `gc` is at work on it.
    pub fn verify(&self, on_progress: impl Fn(VerifyProgress) + Sync) -> Result<VerifyReport> {
        self.verify_sample(1.0, on_progress)
    }

    /// [`Store::verify`] that hashes only a share of the blobs, from 0 to 1: others each time.
    ///
    /// # Errors
    /// Likewise.
    pub fn verify_sample(&self, share: f64, on_progress: impl Fn(VerifyProgress) + Sync) -> Result<VerifyReport> {
        let _guard = self.guard()?;
        let mut blobs = self.list::<BlobDigest>("blobs")?;
        if share < 1.0 {
            let chance = chance();
            let rank =
                |blob: &walk::Named<BlobDigest>| *chance.clone().update(blob.id.as_bytes()).finalize().as_bytes();
            blobs.sort_by_cached_key(rank);
            blobs.truncate((blobs.len() as f64 * share).ceil() as usize);
        }
        let total = blobs.iter().map(|blob| blob.meta.len()).sum();
        let done = AtomicU64::new(0);
        on_progress(VerifyProgress { done: 0, total });
        let intact = walk::in_parallel(&blobs, |blob| {
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
        if !report.is_clean() {
            self.forget_recent()?;
        }
        Ok(report)
    }

    fn verify_records(&self, report: &mut VerifyReport) -> Result<()> {
        let mut missing = BTreeSet::new();
        let elsewhere = elsewhere(self.root());
        let has = |blob: BlobRef| self.has_here(blob) || elsewhere.get(&blob.blob) == Some(&blob.size);
        for action in self.list::<ActionKey>("actions")? {
            report.actions += 1;
            let seen = match sealed::read::<StoredAction>(&action.path)? {
                Sealed::Intact(stored, seen) if stored.record.key == action.id => {
                    let lost: Vec<_> = stored.blobs().filter(|blob| !has(*blob)).collect();
                    missing.extend(lost.iter().map(|blob| blob.blob));
                    (!lost.is_empty()).then_some(seen)
                }
                Sealed::Intact(_, seen) | Sealed::Damaged(seen) => Some(seen),
                Sealed::Absent => None,
            };
            if let Some(seen) = seen {
                self.set_aside(&action.path, &seen)?;
                report.actions_removed.push(action.id);
            }
        }
        for memo in self.list::<MemoKey>("memos")? {
            report.memos += 1;
            let seen = match sealed::read::<StoredMemo>(&memo.path)? {
                Sealed::Intact(stored, _) if stored.key == memo.id && has(stored.value) => None,
                Sealed::Intact(stored, seen) => {
                    if stored.key == memo.id {
                        missing.insert(stored.value.blob);
                    }
                    Some(seen)
                }
                Sealed::Damaged(seen) => Some(seen),
                Sealed::Absent => None,
            };
            if let Some(seen) = seen {
                self.set_aside(&memo.path, &seen)?;
                report.memos_removed.push(memo.id);
            }
        }
        let damaged: BTreeSet<_> = report.damaged.iter().copied().collect();
        report.missing = missing.difference(&damaged).copied().collect();
        Ok(())
    }

    /// Hashes a blob's file and moves it away if it is damaged. Returns whether it is intact (or gone).
    pub(crate) fn check_file(&self, digest: BlobDigest, path: &Path) -> Result<bool> {
        let Some(mut file) = found(File::open(path), "read", path)? else {
            return Ok(true);
        };
        let len = file.metadata().map_err(Error::io("read", path))?.len();
        let intact = match blob::hash_file(&mut file, path, len >= BIG) {
            Ok(found) => found.blob == digest,
            // A sector that cannot be read.
            Err(Error::Io { source, .. }) if source.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => {
                false
            }
            Err(err) => return Err(err),
        };
        if intact {
            self.set_verified(digest);
        } else {
            self.forget_verified(digest);
            self.quarantine(path, &file)?;
        }
        Ok(intact)
    }
}

/// Something that is different each time: it reaches no result.
fn chance() -> blake3::Hasher {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let mut hasher = blake3::Hasher::new();
    hasher.update(&now.as_nanos().to_le_bytes());
    hasher.update(&std::process::id().to_le_bytes());
    hasher
}
