//! Garbage collection: eviction of actions, memos and blobs that no run has used for a while.

use crate::checksummed::{self, Checksummed};
use crate::digest::{ActionKey, BlobDigest, MemoKey};
use crate::error::{Error, Result};
use crate::fs::metadata;
use crate::lock::StoreGuard;
use crate::record::{StoredAction, StoredMemo};
use crate::status::Count;
use crate::store::Store;
use crate::{file_lock, listing, workspace};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::ops::Deref;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The rules of a garbage collection.
#[derive(Clone, Debug)]
pub struct GcPlan {
    /// The actions that must stay, with their outputs and logs.
    pub keep_actions: BTreeSet<ActionKey>,
    /// Files written or used within this time before `now` stay, too.
    pub keep_younger_than: Duration,
    /// The time from which ages are counted.
    pub now: SystemTime,
    /// If set, a dry run: drops nothing, and reports the objects that it would drop.
    pub dry_run: bool,
}

/// The files dropped, or those that a dry run would drop.
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
    /// Batches of jobs of clusters.
    pub jobs: Count,
    /// Copies of the program for the nodes of clusters.
    pub programs: Count,
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
            self.jobs,
            self.programs,
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
        // A modification time in the future counts as recent.
        self.now
            .duration_since(modified)
            .map_or(true, |age| age < self.keep_younger_than)
    }

    /// True for what stays neither by the plan nor because it is younger than `least`.
    pub(crate) fn is_over(&self, modified: SystemTime, least: Duration) -> bool {
        let age = self.now.duration_since(modified).unwrap_or_default();
        !self.is_young(modified) && age >= least
    }

    pub(crate) fn is_young_file(&self, meta: &Metadata) -> bool {
        meta.modified().map_or(true, |time| self.is_young(time))
    }
}

/// A collection under way.
pub(crate) struct Collection<'a> {
    plan: &'a GcPlan,
    guard: StoreGuard,
}

impl Deref for Collection<'_> {
    type Target = GcPlan;

    fn deref(&self) -> &GcPlan {
        self.plan
    }
}

impl Store {
    /// Drops everything that the plan does not keep. A process killed at any instant leaves a store in which
    /// every record still has its blobs: records are removed first.
    ///
    /// # Errors
    /// [`Error::Busy`] when a run uses the store, or the store cannot be read or written.
    pub fn gc(&self, plan: &GcPlan) -> Result<GcReport> {
        let guard = self.exclusive()?;
        let plan = &Collection { plan, guard };
        let mut report = GcReport::default();
        let blobs = self.list::<BlobDigest>("blobs")?;
        let mut keep: BTreeSet<BlobDigest> = blobs
            .iter()
            .filter(|blob| plan.is_young_file(&blob.meta))
            .map(|blob| blob.id)
            .collect();
        if !plan.dry_run {
            // Earlier versions kept the hits of the last runs here.
            let _ = std::fs::remove_dir_all(self.folder("recent"));
        }
        self.gc_actions(plan, &mut keep, &mut report)?;
        self.gc_memos(plan, &mut keep, &mut report)?;
        for blob in blobs {
            let bytes = blob.meta.len();
            if keep.contains(&blob.id) {
                report.kept.add(bytes);
            } else {
                report.blobs.add(bytes);
                self.drop_any(plan, &blob.path, false)?;
                if !plan.dry_run {
                    self.forget_verified(blob.id);
                }
            }
        }
        self.gc_derived(plan)?;
        for file in self.list::<BlobDigest>("stat")? {
            if !plan.is_young_file(&file.meta) {
                self.drop_file(plan, &file.path, &file.meta, &mut report.stat)?;
            }
        }
        for folder in self.list::<MemoKey>("scratch")? {
            let (bytes, newest) = listing::size_and_age(&folder.path, &folder.meta)?;
            if plan.is_young(newest) {
                self.gc_unfinished(plan, &folder.path, &mut report)?;
                continue;
            }
            report.scratch.add(bytes);
            self.drop_any(plan, &folder.path, folder.meta.is_dir())?;
        }
        self.gc_jobs(plan, &mut report)?;
        self.gc_tmp(plan, &mut report)?;
        self.gc_loose_files(plan, &mut report)?;
        Ok(report)
    }

    fn gc_actions(
        &self,
        plan: &Collection<'_>,
        keep: &mut BTreeSet<BlobDigest>,
        report: &mut GcReport,
    ) -> Result<()> {
        for action in self.list::<ActionKey>("actions")? {
            if (plan.keep_actions.contains(&action.id) || plan.is_young_file(&action.meta))
                && let Checksummed::Intact(stored, _) = checksummed::read::<StoredAction>(&action.path)?
            {
                keep.extend(stored.blobs().chain(stored.record.log).map(|blob| blob.blob));
                keep.extend(stored.record.sources.iter().map(|source| source.blake3));
            } else {
                self.drop_file(plan, &action.path, &action.meta, &mut report.actions)?;
            }
        }
        Ok(())
    }

    /// Drops old memos. A memo stays, with its blob, while it is recent; an old one stays for as long as
    /// another record keeps its blob.
    fn gc_memos(
        &self,
        plan: &Collection<'_>,
        keep: &mut BTreeSet<BlobDigest>,
        report: &mut GcReport,
    ) -> Result<()> {
        let mut old = Vec::new();
        for memo in self.list::<MemoKey>("memos")? {
            match checksummed::read::<StoredMemo>(&memo.path)? {
                Checksummed::Intact(stored, meta) if plan.is_young_file(&meta) => {
                    keep.insert(stored.value.blob);
                }
                Checksummed::Intact(stored, _) => old.push((memo, Some(stored.value.blob))),
                _ => old.push((memo, None)),
            }
        }
        for (memo, value) in old {
            if !value.is_some_and(|blob| keep.contains(&blob)) {
                self.drop_file(plan, &memo.path, &memo.meta, &mut report.memos)?;
            }
        }
        Ok(())
    }

    /// Drops the leftovers of killed writers in `tmp`: files, and workspaces with their lock files.
    fn gc_tmp(&self, plan: &Collection<'_>, report: &mut GcReport) -> Result<()> {
        let tmp = self.folder("tmp");
        let (folders, _): (Vec<_>, Vec<_>) = listing::entries_with_metadata(&tmp)?
            .into_iter()
            .partition(|(_, meta)| meta.is_dir());
        for (path, meta) in folders {
            let lock_path = workspace::lock_path(&path);
            let lock = match metadata(&lock_path)? {
                // The lock file is created before the directory and removed after it.
                None => None,
                Some(meta) => match file_lock::abandoned(self, &lock_path, &meta, plan.now) {
                    Some(lock) => Some(lock),
                    None => continue,
                },
            };
            let (bytes, _) = listing::size_and_age(&path, &meta)?;
            report.tmp.add(bytes);
            if !plan.dry_run {
                self.check_exclusive(plan)?;
                match listing::remove_tree(&path) {
                    // A program that outlived its run may still be writing to the directory.
                    Err(err) if matches!(err.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => {
                        continue;
                    }
                    // The directories belong to another user, whose `gc` removes them.
                    Err(err) if err.kind() == ErrorKind::PermissionDenied => continue,
                    removed => removed.map_err(Error::io("remove", &path))?,
                }
            }
            // From here on, the lock file is a leftover like any other.
            drop(lock);
        }
        for (path, meta) in listing::entries_with_metadata(&tmp)? {
            // The store itself writes only regular files to `tmp`.
            let lock = file_lock::abandoned(self, &path, &meta, plan.now);
            if !meta.is_dir() && (lock.is_some() || !meta.is_file()) {
                self.drop_file(plan, &path, &meta, &mut report.tmp)?;
            }
        }
        Ok(())
    }

    /// Drops damaged files, and lock files without a holder.
    fn gc_loose_files(&self, plan: &Collection<'_>, report: &mut GcReport) -> Result<()> {
        for (path, meta) in listing::entries_with_metadata(&self.folder("damaged"))? {
            if plan.is_young_file(&meta) {
                continue;
            }
            report.damaged.add(listing::size_and_age(&path, &meta)?.0);
            self.drop_any(plan, &path, meta.is_dir())?;
        }
        if plan.dry_run {
            return Ok(());
        }
        if let (Some(members), Some(owner)) = (self.members(), plan.guard.owner()) {
            return members.remove_old_epochs(owner);
        }
        for (path, _) in listing::entries_with_metadata(&self.folder("locks"))? {
            let is_action = path.file_name().is_some_and(|name| name.len() == 64);
            if is_action && let Some(_held) = file_lock::try_acquire(self, &path, file_lock::Mode::Exclusive)?
            {
                self.remove(&path)?;
            }
        }
        Ok(())
    }

    fn drop_file(
        &self,
        plan: &Collection<'_>,
        path: &Path,
        meta: &Metadata,
        count: &mut Count,
    ) -> Result<()> {
        count.add(meta.len());
        self.drop_any(plan, path, false)
    }

    /// Removes a file or a directory, except in a dry run.
    pub(crate) fn drop_any(&self, plan: &Collection<'_>, path: &Path, is_dir: bool) -> Result<()> {
        if plan.dry_run {
            return Ok(());
        }
        self.check_exclusive(plan)?;
        match is_dir {
            true => listing::remove_tree(path).map_err(Error::io("remove", path)),
            false => self.remove(path),
        }
    }

    /// Fails once runs may use the store, as when this process was stopped for long.
    fn check_exclusive(&self, plan: &Collection<'_>) -> Result<()> {
        match plan.guard.is_held() {
            true => Ok(()),
            false => Err(self.busy(None)),
        }
    }

    /// Drops the files that killed writers left in a directory of checkpoints.
    fn gc_unfinished(&self, plan: &Collection<'_>, folder: &Path, report: &mut GcReport) -> Result<()> {
        for (path, meta) in listing::entries_with_metadata(folder)? {
            if !meta.is_dir() && path.extension().is_some_and(|extension| extension == "tmp") {
                self.drop_file(plan, &path, &meta, &mut report.tmp)?;
            }
        }
        Ok(())
    }
}
