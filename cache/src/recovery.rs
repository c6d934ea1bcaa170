//! Durability, and recovery after an unclean stop of the machine.
//!
//! No file is flushed by itself. [`Store::flush`] flushes the whole file system and then writes, to the file
//! `flushed`, the machine's boot id and the time just before the flush: files with an older modification time
//! are on the disk. The first process that opens the store under another boot id hashes the younger files,
//! quarantines the damaged ones, and writes the new boot id. Records need no such check: their checksum is
//! verified on every read.
//!
//! A store that several hosts share ([`Store::open_shared`]) has none of this: each file is flushed before it
//! is renamed, and no host's boot id says whether the server stopped.
//!
//! After a clean stop few files are younger than the last flush, and the check lists file names only.

use crate::atomic_write::{FLUSHING, UNFLUSHED};
use crate::checksummed::{self, Checksummed};
use crate::digest::BlobDigest;
use crate::error::{Error, Result};
use crate::fs::{if_allowed, if_exists, metadata};
use crate::life::boot_id;
use crate::parallel;
use crate::store::Store;
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};

/// The tolerance for rounded modification times and clocks that are set back a little.
const TOLERANCE: Duration = Duration::from_secs(3);

#[derive(Debug, Serialize, Deserialize)]
struct Flushed {
    /// The boot id, which differs from one start of the machine to the next.
    boot: String,
    /// The time of the flush in seconds since 1970; files modified earlier are on the disk.
    until: f64,
}

impl Store {
    /// Flushes the file system, so that everything in the store survives a power failure. Call it at the end
    /// of a run and at intervals of some minutes. Costs nothing when no process has written to the store
    /// since the last flush. On a store that several hosts share, nothing is left to be flushed: the server
    /// has the bytes of each file, on its disk, before the file has its name.
    pub fn flush(&self) -> Result<()> {
        if self.is_shared() {
            return Ok(());
        }
        // A user with only read permission has written nothing.
        if_allowed(self.flush_as(boot_id())).map(|_| ())
    }

    fn flush_as(&self, boot: Option<String>) -> Result<()> {
        let (marker, flushing) = (self.folder(UNFLUSHED), self.folder(FLUSHING));
        // In this order: the marker is renamed before it is removed.
        if metadata(&marker)?.is_none() && metadata(&flushing)?.is_none() {
            return Ok(());
        }
        // Another flush may have renamed the marker for these files and may not have ended yet.
        let _lock = self.task_lock("flush")?;
        let start = SystemTime::now();
        // Files written from here on mark the store again. The marker is only renamed: if this process ends
        // during the flush, another process sees that there is something to flush.
        if if_exists(std::fs::rename(&marker, &flushing), "rename", &marker)?.is_none()
            && metadata(&flushing)?.is_none()
        {
            return Ok(());
        }
        self.sync()?;
        if let Some(boot) = boot {
            self.note_flushed(&boot, start)?;
        }
        self.remove(&flushing)
    }

    /// Checks the files that an unclean stop may have damaged.
    pub(crate) fn recover(&self) -> Result<()> {
        // Without a boot id, blobs are still checked on their first use in each process.
        boot_id().map_or(Ok(()), |boot| self.recover_as(&boot))
    }

    fn recover_as(&self, boot: &str) -> Result<()> {
        if self.flushed()?.is_some_and(|flushed| flushed.boot == boot) {
            return Ok(());
        }
        let _lock = self.task_lock("recovery")?;
        let since = match self.flushed()? {
            Some(flushed) if flushed.boot == boot => return Ok(()),
            Some(flushed) => {
                SystemTime::UNIX_EPOCH + Duration::try_from_secs_f64(flushed.until).unwrap_or_default()
            }
            None => SystemTime::UNIX_EPOCH,
        };
        let since = since.checked_sub(TOLERANCE).unwrap_or(SystemTime::UNIX_EPOCH);
        let start = SystemTime::now();
        let mut suspects = self.list::<BlobDigest>("blobs")?;
        suspects.retain(|blob| blob.meta.modified().is_ok_and(|time| time >= since));
        parallel::map(&suspects, |blob| self.check_file(blob.id, &blob.path))?;
        if !suspects.is_empty() {
            self.sync()?;
        }
        self.note_flushed(boot, start)
    }

    fn flushed(&self) -> Result<Option<Flushed>> {
        match checksummed::read(&self.folder("flushed"))? {
            Checksummed::Intact(flushed, _) => Ok(Some(flushed)),
            Checksummed::Absent | Checksummed::Damaged(_) => Ok(None),
        }
    }

    /// Records that all files older than `until` are on the disk; the caller must have flushed them. Losing
    /// this note is harmless: more files are checked then.
    fn note_flushed(&self, boot: &str, until: SystemTime) -> Result<()> {
        let path = self.folder("flushed");
        let flushed = Flushed {
            boot: boot.to_owned(),
            until: until
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default()
                .as_secs_f64(),
        };
        checksummed::replace(self.root(), &path, &flushed)
    }

    fn sync(&self) -> Result<()> {
        let root = self.root();
        #[cfg(target_os = "macos")]
        let flushed = crate::macos::sync_volume(root);
        #[cfg(not(target_os = "macos"))]
        let flushed = std::fs::File::open(root).and_then(|dir| Ok(rustix::fs::syncfs(&dir)?));
        flushed.map_err(Error::io("flush", root))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write as _;

    /// Simulates a power failure before the bytes of a file reached the disk.
    fn zero(store: &Store, blob: crate::blob::BlobRef) {
        let path = store.blob_path(blob.blob);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, vec![0; blob.size as usize]).unwrap();
    }

    #[test]
    fn unflushed_blobs_are_checked_under_another_boot() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let (lost, kept) = (store.put(b"lost").unwrap(), store.put(b"kept").unwrap());
        store.flush_as(Some("first".into())).unwrap();
        zero(&store, lost);

        store.recover_as("first").unwrap();
        assert!(store.has(lost), "the same boot: nothing to check");
        store.recover_as("second").unwrap();
        assert!(!store.has(lost));
        assert!(store.has(kept));
        assert_eq!(store.flushed().unwrap().unwrap().boot, "second");
    }

    #[test]
    fn only_a_written_store_is_flushed() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let until = || store.flushed().unwrap().unwrap().until;
        let first = until();
        store.flush().unwrap();
        assert_eq!(until(), first, "nothing to flush");
        store.put(b"x").unwrap();
        store.flush().unwrap();
        let second = until();
        assert!(second > first);
        store.put(b"x").unwrap();
        store.flush().unwrap();
        assert_eq!(until(), second, "it was there already");
    }

    #[test]
    fn a_flush_that_was_killed_is_done_again() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        store.put(b"x").unwrap();
        let until = || store.flushed().unwrap().unwrap().until;
        let before = until();
        // The state in which the kill left it.
        std::fs::rename(store.folder(UNFLUSHED), store.folder(FLUSHING)).unwrap();
        store.flush().unwrap();
        assert!(until() > before);
        assert!(metadata(&store.folder(FLUSHING)).unwrap().is_none());
    }

    #[test]
    fn a_rename_after_a_flush_marks_the_store_again() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let mut writer = store.writer().unwrap();
        writer.write_all(b"x").unwrap();
        store.flush().unwrap();
        assert!(metadata(&store.folder(UNFLUSHED)).unwrap().is_none());
        writer.finish().unwrap();
        assert!(metadata(&store.folder(UNFLUSHED)).unwrap().is_some());
    }

    #[test]
    fn blobs_flushed_long_before_are_not_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let old = store.put(b"old").unwrap();
        zero(&store, old);
        let hour_ago = SystemTime::now() - Duration::from_secs(3600);
        let file = File::options().write(true).open(store.blob_path(old.blob)).unwrap();
        file.set_modified(hour_ago).unwrap();
        store.flush_as(Some("first".into())).unwrap();
        store.recover_as("second").unwrap();
        assert!(store.has(old));
    }

    /// A later time would leave damaged files unchecked.
    #[test]
    fn a_damaged_note_means_that_everything_is_checked() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let lost = store.put(b"lost").unwrap();
        store.flush_as(Some("first".into())).unwrap();
        zero(&store, lost);
        let path = store.folder("flushed");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, text.replacen("\"until\":1", "\"until\":9", 1)).unwrap();
        store.recover_as("second").unwrap();
        assert!(!store.has(lost));
    }

    #[test]
    fn a_lost_note_means_that_everything_is_checked() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let lost = store.put(b"lost").unwrap();
        store.flush().unwrap();
        zero(&store, lost);
        std::fs::remove_file(store.folder("flushed")).unwrap();
        let store = Store::open(dir.path()).unwrap();
        assert!(!store.has(lost));
        assert!(metadata(&store.folder("flushed")).unwrap().is_some());
    }
}
