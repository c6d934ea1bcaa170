//! Drops what nobody needs any more.

use crate::publish::{metadata, remove};
use crate::record::{StoredAction, StoredMemo};
use crate::sealed::{self, Sealed};
use crate::{ActionKey, BlobDigest, Count, Error, MemoKey, Result, Store, lock, walk, workspace};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// What to keep.
#[derive(Clone, Debug)]
pub struct GcPlan {
    /// The actions that must stay, with their outputs and logs.
    pub keep_actions: BTreeSet<ActionKey>,
    /// What was written or used in this time before `now` stays, too.
    pub keep_younger_than: Duration,
    /// The time to reckon ages from.
    pub now: SystemTime,
    /// Drops nothing, and reports what would be dropped.
    pub dry_run: bool,
}

/// What was dropped, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GcReport {
    /// Action records.
    pub actions: Count,
    /// Memo records.
    pub memos: Count,
    /// Blobs.
    pub blobs: Count,
    /// Checkpoints of unfinished work.
    pub scratch: Count,
    /// Digests of source files.
    pub stat: Count,
    /// Leftovers of crashes.
    pub tmp: Count,
    /// Damaged files.
    pub damaged: Count,
    /// The blobs that stay.
    pub kept: Count,
}

impl GcReport {
    /// The bytes dropped.
    pub fn bytes(&self) -> u64 {
        [
            self.actions,
            self.memos,
            self.blobs,
            self.scratch,
            self.stat,
            self.tmp,
            self.damaged,
        ]
        .iter()
        .map(|count| count.bytes)
        .sum()
    }
}

impl GcPlan {
    fn is_young(&self, modified: SystemTime) -> bool {
        // A time to come is young, too.
        self.now
            .duration_since(modified)
            .map_or(true, |age| age < self.keep_younger_than)
    }

    fn is_young_file(&self, meta: &Metadata) -> bool {
        meta.modified().map_or(true, |time| self.is_young(time))
    }
}

impl Store {
    /// Drops what the plan does not keep. Killed at any instant, it leaves a store in which every record still has its
    /// blobs: records go first.
    ///
    /// # Errors
    /// [`Error::Busy`] when a run uses the store, or the store cannot be read or written.
    pub fn gc(&self, plan: &GcPlan) -> Result<GcReport> {
        let _alone = self.exclusive()?;
        let mut report = GcReport::default();
        let blobs = self.list::<BlobDigest>("blobs")?;
        let mut keep: BTreeSet<BlobDigest> = blobs
            .iter()
            .filter(|blob| plan.is_young_file(&blob.meta))
            .map(|blob| blob.id)
            .collect();
        let mut recent = BTreeSet::new();
        for (path, meta, keys) in self.recent_files()? {
            if plan.is_young_file(&meta) {
                recent.extend(keys);
            } else if !plan.dry_run {
                remove(&path)?;
            }
        }
        self.gc_actions(plan, &recent, &mut keep, &mut report)?;
        self.gc_memos(plan, &mut keep, &mut report)?;
        for blob in blobs {
            let bytes = blob.meta.len();
            if keep.contains(&blob.id) {
                report.kept.add(bytes);
            } else {
                report.blobs.add(bytes);
                if !plan.dry_run {
                    remove(&blob.path)?;
                    self.forget_verified(blob.id);
                }
            }
        }
        for file in self.list::<BlobDigest>("stat")? {
            if !plan.is_young_file(&file.meta) {
                drop_file(plan, &file.path, &file.meta, &mut report.stat)?;
            }
        }
        for folder in self.list::<MemoKey>("scratch")? {
            let (bytes, newest) = walk::size_and_age(&folder.path, &folder.meta)?;
            if plan.is_young(newest) {
                gc_unfinished(plan, &folder.path, &mut report)?;
                continue;
            }
            report.scratch.add(bytes);
            if !plan.dry_run {
                std::fs::remove_dir_all(&folder.path).map_err(Error::io("remove", &folder.path))?;
            }
        }
        self.gc_tmp(plan, &mut report)?;
        self.gc_loose_files(plan, &mut report)?;
        Ok(report)
    }

    fn gc_actions(
        &self,
        plan: &GcPlan,
        recent: &BTreeSet<ActionKey>,
        keep: &mut BTreeSet<BlobDigest>,
        report: &mut GcReport,
    ) -> Result<()> {
        for action in self.list::<ActionKey>("actions")? {
            let wanted = plan.keep_actions.contains(&action.id) || recent.contains(&action.id);
            if (wanted || plan.is_young_file(&action.meta))
                && let Sealed::Intact(stored, _) = sealed::read::<StoredAction>(&action.path)?
            {
                keep.extend(stored.blobs().chain(stored.record.log).map(|blob| blob.blob));
            } else {
                drop_file(plan, &action.path, &action.meta, &mut report.actions)?;
            }
        }
        Ok(())
    }

    /// A memo stays while it is young, with its blob, and for as long as something else keeps its blob.
    fn gc_memos(&self, plan: &GcPlan, keep: &mut BTreeSet<BlobDigest>, report: &mut GcReport) -> Result<()> {
        let mut old = Vec::new();
        for memo in self.list::<MemoKey>("memos")? {
            match sealed::read::<StoredMemo>(&memo.path)? {
                Sealed::Intact(stored, meta) if plan.is_young_file(&meta) => {
                    keep.insert(stored.value.blob);
                }
                Sealed::Intact(stored, _) => old.push((memo, Some(stored.value.blob))),
                _ => old.push((memo, None)),
            }
        }
        for (memo, value) in old {
            if !value.is_some_and(|blob| keep.contains(&blob)) {
                drop_file(plan, &memo.path, &memo.meta, &mut report.memos)?;
            }
        }
        Ok(())
    }

    /// What killed writers left in `tmp`: files, and workspaces with the file that locks them.
    fn gc_tmp(&self, plan: &GcPlan, report: &mut GcReport) -> Result<()> {
        let tmp = self.folder("tmp");
        let (folders, _): (Vec<_>, Vec<_>) = walk::entries_with_metadata(&tmp)?
            .into_iter()
            .partition(|(_, meta)| meta.is_dir());
        for (path, meta) in folders {
            let lock_path = workspace::lock_path(&path);
            let lock = match metadata(&lock_path)? {
                // The lock is made before the folder and goes after it.
                None => None,
                Some(meta) => match lock::abandoned(&lock_path, &meta, plan.now) {
                    Some(lock) => Some(lock),
                    None => continue,
                },
            };
            let (bytes, _) = walk::size_and_age(&path, &meta)?;
            report.tmp.add(bytes);
            if !plan.dry_run {
                match walk::remove_tree(&path) {
                    // A program that outlived its run may still be writing there.
                    Err(err) if matches!(err.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => continue,
                    removed => removed.map_err(Error::io("remove", &path))?,
                }
            }
            // Its own file is a leftover like any other from here on.
            drop(lock);
        }
        for (path, meta) in walk::entries_with_metadata(&tmp)? {
            if !meta.is_dir()
                && let Some(_lock) = lock::abandoned(&path, &meta, plan.now)
            {
                drop_file(plan, &path, &meta, &mut report.tmp)?;
            }
        }
        Ok(())
    }

    /// Damaged files, and locks that nobody holds.
    fn gc_loose_files(&self, plan: &GcPlan, report: &mut GcReport) -> Result<()> {
        for (path, meta) in walk::entries_with_metadata(&self.folder("damaged"))? {
            if meta.is_file() && !plan.is_young_file(&meta) {
                drop_file(plan, &path, &meta, &mut report.damaged)?;
            }
        }
        if plan.dry_run {
            return Ok(());
        }
        for (path, _) in walk::entries_with_metadata(&self.folder("locks"))? {
            let is_action = path.file_name().is_some_and(|name| name.len() == 64);
            if is_action && let Some(_held) = lock::try_exclusive(&path)? {
                remove(&path)?;
            }
        }
        Ok(())
    }
}

/// Files of a folder of checkpoints that were being written when their writer was killed.
fn gc_unfinished(plan: &GcPlan, folder: &Path, report: &mut GcReport) -> Result<()> {
    for (path, meta) in walk::entries_with_metadata(folder)? {
        if meta.is_file() && path.extension().is_some_and(|extension| extension == "tmp") {
            drop_file(plan, &path, &meta, &mut report.tmp)?;
        }
    }
    Ok(())
}

fn drop_file(plan: &GcPlan, path: &Path, meta: &Metadata, count: &mut Count) -> Result<()> {
    count.add(meta.len());
    if plan.dry_run { Ok(()) } else { remove(path) }
}
