//! What survives an unclean stop of the machine.
//!
//! Nothing is flushed file by file. [`Store::flush`] flushes the whole file system and then notes, in the file
//! `flushed`, the boot of the machine and the time just before: what has an older modification time is on the disk.
//! Whoever opens the store under another boot hashes what is younger, moves away what is damaged, and notes the new
//! boot. Records need no such check: their checksum is looked at on every read.
//!
//! After a clean stop nothing or little is younger than the last flush, and the check is a walk over file names.

use crate::publish::{self, found, metadata};
use crate::{BlobDigest, Error, Result, Store, walk};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// File systems round modification times, and clocks are set back a little.
const SLACK: Duration = Duration::from_secs(3);

#[derive(Debug, Serialize, Deserialize)]
struct Flushed {
    /// Names the time from one start of the machine to the next.
    boot: String,
    /// Seconds since 1970; what is older is on the disk.
    until: f64,
}

impl Store {
    /// Makes everything that is in the store survive a power failure. Call it at the end of a run and at intervals of
    /// some minutes: it flushes the file system as a whole. Costs nothing when no process has written to the store since
    /// the last time.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub fn flush(&self) -> Result<()> {
        self.flush_as(boot_id())
    }

    fn flush_as(&self, boot: Option<String>) -> Result<()> {
        let (marker, flushing) = (self.folder(publish::UNFLUSHED), self.folder(publish::FLUSHING));
        // In this order: the marker changes its name before it goes.
        if metadata(&marker)?.is_none() && metadata(&flushing)?.is_none() {
            return Ok(());
        }
        // Another flush may have taken the marker for what is to be flushed here, and not be done.
        let _alone = self.flush_lock()?;
        let start = SystemTime::now();
        // What is written from here on marks the store again. The marker only changes its name: should this process end
        // before it is done, another one sees that there is something to flush.
        if found(std::fs::rename(&marker, &flushing), "rename", &marker)?.is_none() && metadata(&flushing)?.is_none() {
            return Ok(());
        }
        self.sync()?;
        if let Some(boot) = boot {
            self.note_flushed(&boot, start)?;
        }
        publish::remove(&flushing)
    }

    /// Checks what an unclean stop may have damaged.
    pub(crate) fn recover(&self) -> Result<()> {
        // Where the system does not name its boots, blobs are still checked on their first use in each process.
        boot_id().map_or(Ok(()), |boot| self.recover_as(&boot))
    }

    fn recover_as(&self, boot: &str) -> Result<()> {
        if self.flushed()?.is_some_and(|flushed| flushed.boot == boot) {
            return Ok(());
        }
        let _lock = self.recovery_lock()?;
        let since = match self.flushed()? {
            Some(flushed) if flushed.boot == boot => return Ok(()),
            Some(flushed) => SystemTime::UNIX_EPOCH + Duration::try_from_secs_f64(flushed.until).unwrap_or_default(),
            None => SystemTime::UNIX_EPOCH,
        };
        let since = since.checked_sub(SLACK).unwrap_or(SystemTime::UNIX_EPOCH);
        let start = SystemTime::now();
        let mut suspects = self.list::<BlobDigest>("blobs")?;
        suspects.retain(|blob| blob.meta.modified().is_ok_and(|time| time >= since));
        walk::in_parallel(&suspects, |blob| self.check_file(blob.id, &blob.path))?;
        if !suspects.is_empty() {
            self.sync()?;
        }
        self.note_flushed(boot, start)
    }

    fn flushed(&self) -> Result<Option<Flushed>> {
        let path = self.folder("flushed");
        let text = found(std::fs::read(&path), "read", &path)?;
        Ok(text.and_then(|text| serde_json::from_slice(&text).ok()))
    }

    /// May only be called when all that is older than `until` is on the disk. That the note itself may be lost does no
    /// harm: more is checked then.
    fn note_flushed(&self, boot: &str, until: SystemTime) -> Result<()> {
        let path = self.folder("flushed");
        let flushed = Flushed {
            boot: boot.to_owned(),
            until: until
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default()
                .as_secs_f64(),
        };
        let text = serde_json::to_string(&flushed).map_err(|err| Error::io("encode", &path)(err.into()))?;
        self.replace_file(&path, &text)
    }

    fn sync(&self) -> Result<()> {
        let root = self.root();
        #[cfg(target_os = "linux")]
        {
            let dir = File::open(root).map_err(Error::io("flush", root))?;
            rustix::fs::syncfs(&dir).map_err(|err| Error::io("flush", root)(err.into()))
        }
        #[cfg(not(target_os = "linux"))]
        {
            rustix::fs::sync();
            Ok(())
        }
    }

    /// Writes a small file of the store itself. It is not flushed: what reads it copes with its loss.
    pub(crate) fn replace_file(&self, path: &Path, text: &str) -> Result<()> {
        let mut file = publish::unmarked_temporary(self.root())?;
        file.write_all(text.as_bytes())
            .map_err(Error::io("write", file.path()))?;
        publish::put_in_place(file, path)
    }
}

/// What names this start of the machine.
fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned()).filter(|id| !id.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a power failure does to a file whose bytes never reached the disk.
    fn zero(store: &Store, blob: crate::BlobRef) {
        let path = store.blob_path(blob.blob);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, vec![0; blob.size as usize]).unwrap();
    }

    #[test]
    fn what_was_not_flushed_is_checked_under_another_boot() {
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
        // As far as it came.
        std::fs::rename(store.folder(publish::UNFLUSHED), store.folder(publish::FLUSHING)).unwrap();
        store.flush().unwrap();
        assert!(until() > before);
        assert!(metadata(&store.folder(publish::FLUSHING)).unwrap().is_none());
    }

    #[test]
    fn what_is_put_in_place_after_a_flush_marks_the_store_again() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let mut writer = store.writer().unwrap();
        writer.write_all(b"x").unwrap();
        store.flush().unwrap();
        assert!(metadata(&store.folder(publish::UNFLUSHED)).unwrap().is_none());
        writer.finish().unwrap();
        assert!(metadata(&store.folder(publish::UNFLUSHED)).unwrap().is_some());
    }

    #[test]
    fn what_was_flushed_long_before_is_not_read_again() {
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
