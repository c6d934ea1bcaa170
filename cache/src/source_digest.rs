//! Digests of files outside the store.
//!
//! A file whose metadata has not changed is not read again. As in git, that is sound only if the file was
//! already older than the coarsest clock of a file system when it was hashed: a change right after the
//! hashing could otherwise leave its times unchanged.
//!
//! A program that maps a file into memory writes to its pages without a system call. Local file systems on a
//! disk update the times when a clean page is first written to, but not again until the page has been written
//! back: a page that may still be dirty is written back before the file is hashed. Other file systems update
//! the times late or not at all (tmpfs, FUSE), or do not record the writes of other machines (NFS): files
//! there are hashed each time ([`has_reliable_times`]). On macOS, APFS and HFS+ count as reliable; there the
//! system may note the writes of a program that maps a file only when it writes the pages back.

use crate::blob::{self, BlobRef};
use crate::checksummed::{self, Checksummed};
use crate::digest::BlobDigest;
use crate::error::{Error, Result};
use crate::flush::flush;
use crate::fs::{if_allowed, touch_record};
use crate::regular_file;
use crate::store::Store;
use crate::store::sharded;
use serde::{Deserialize, Serialize};
use std::fs::{File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The resolution of the coarsest file system clock in use (FAT).
const RACY: Duration = Duration::from_secs(2);
/// An upper bound of the time after which the system has written back a page of a mapped file (30 s by
/// default, checked every 5 s).
const WRITEBACK: Duration = Duration::from_secs(120);
/// An upper bound of the tick of the clock that stamps files.
const TICK: Duration = Duration::from_millis(20);
/// The number of attempts to read a file that keeps changing.
const ATTEMPTS: usize = 3;

/// The metadata that changes whenever a file changes. Programs can set the modification time, but not the
/// change time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    inode: u64,
    device: u64,
}

impl Stamp {
    fn of(meta: &Metadata) -> Self {
        Self {
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
            inode: meta.ino(),
            device: meta.dev(),
        }
    }

    /// True if the last change is older than `age`.
    fn is_older_than(&self, age: Duration, now: SystemTime) -> bool {
        let limit = now.checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
        let limit = limit.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let limit = (limit.as_secs() as i64, i64::from(limit.subsec_nanos()));
        self.modified < limit && self.changed < limit
    }
}

/// True if a file's times record every write to it, so that its digest may be cached; otherwise the file is
/// hashed each time.
#[cfg(target_os = "linux")]
pub fn has_reliable_times(path: &Path) -> bool {
    /// The magic numbers of ext2 to ext4, XFS, Btrfs, F2FS and bcachefs, from `linux/magic.h`. Overlayfs is
    /// not listed: its lower file system may be a tmpfs.
    const RELIABLE: [u32; 5] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0xCA45_1A4E];
    rustix::fs::statfs(path).is_ok_and(|fs| RELIABLE.contains(&(fs.f_type as u32)))
}

/// True if a file's times record every write to it, so that its digest may be cached; otherwise the file is
/// hashed each time.
#[cfg(target_os = "macos")]
pub fn has_reliable_times(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|fs| records_writes(&fs.f_fstypename.map(|c| c.cast_unsigned())))
}

/// True for the name of a file system of macOS whose times record every write by a system call. APFS counts
/// nanoseconds, HFS+ seconds, which [`RACY`] covers. Not so the shares of other machines (`smbfs`, `nfs`,
/// `webdav`), `exfat` and FUSE.
#[cfg(any(target_os = "macos", test))]
fn records_writes(name: &[u8]) -> bool {
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    [b"apfs".as_slice(), b"hfs"].contains(&name)
}

#[derive(Serialize, Deserialize)]
struct CachedDigest {
    path: PathBuf,
    stamp: Stamp,
    digest: BlobDigest,
}

impl Store {
    /// The digest and size of a file outside the store. The file is not stored. A file that was hashed before
    /// and has not changed is not read again, if its file system has reliable times.
    ///
    /// # Errors
    /// When the file cannot be read, is not a regular file, keeps changing meanwhile ([`Error::Changing`]),
    /// or the work was interrupted ([`Store::with_interrupt`]).
    pub fn hash_file(&self, path: &Path) -> Result<BlobRef> {
        self.digest_file(path, false)
    }

    /// Hashes a file as [`Store::hash_file`] does, but always reads it and ignores its metadata.
    pub fn rehash_file(&self, path: &Path) -> Result<BlobRef> {
        self.digest_file(path, true)
    }

    fn digest_file(&self, path: &Path, reread: bool) -> Result<BlobRef> {
        let path = &std::path::absolute(path).map_err(Error::io("read", path))?;
        if !reread && let Some(blob) = self.linked_blob(path) {
            return Ok(blob);
        }
        let name = blake3::hash(path.as_os_str().as_bytes()).to_hex();
        let entry = sharded(&self.folder("stat"), &name);
        let now = Stamp::of(&regular_metadata(path)?);
        // A path that is not UTF-8 cannot be written as JSON; such a file is hashed each time.
        let is_cached = path.to_str().is_some() && has_reliable_times(path);
        if !reread
            && is_cached
            && let Checksummed::Intact(known, meta) = checksummed::read::<CachedDigest>(&entry)?
            && known.path == *path
            && known.stamp == now
        {
            touch_record(&entry, &meta);
            return Ok(BlobRef::new(known.digest, now.size));
        }
        for _ in 0..ATTEMPTS {
            let start = SystemTime::now();
            let (mut file, before) = open(path)?;
            let mut is_cached = is_cached && before.is_older_than(RACY, start);
            if is_cached && !before.is_older_than(WRITEBACK, start) {
                is_cached = flush(&file).is_ok();
            }
            let found = blob::hash_file(&mut file, path, true, &|| self.is_interrupted())?;
            let after = Stamp::of(&regular_metadata(path)?);
            if before != after || found.size != after.size {
                continue;
            }
            if is_cached {
                let known = CachedDigest {
                    path: path.clone(),
                    stamp: after,
                    digest: found.blob,
                };
                if_allowed(checksummed::write(self.root(), &entry, &known))?;
            }
            return Ok(found);
        }
        Err(Error::Changing { path: path.clone() })
    }

    /// The blob that a link leads to ([`Workspace::link`](crate::Workspace::link)), which is hashed once in a
    /// process.
    fn linked_blob(&self, path: &Path) -> Option<BlobRef> {
        let to = std::fs::read_link(path).ok()?;
        let name = to.strip_prefix(self.folder("blobs")).ok()?.to_str()?;
        let blob: BlobDigest = name.replace('/', "").parse().ok()?;
        let size = self.local_blob(blob).ok()?.len() as u64;
        Some(BlobRef { blob, size })
    }
}

/// Opens a file such that every later change of it changes its stamp: after a change within the last tick of
/// the clock, a second one could leave the times as they are.
fn open(path: &Path) -> Result<(File, Stamp)> {
    let file = regular_file::open(path).map_err(Error::io("read", path))?;
    let stamp = || {
        file.metadata()
            .map(|meta| Stamp::of(&meta))
            .map_err(Error::io("read", path))
    };
    let mut now = stamp()?;
    if !now.is_older_than(TICK, SystemTime::now()) {
        std::thread::sleep(TICK);
        now = stamp()?;
    }
    Ok((file, now))
}

fn regular_metadata(path: &Path) -> Result<Metadata> {
    let meta = std::fs::metadata(path).map_err(Error::io("read", path))?;
    if meta.is_file() {
        Ok(meta)
    } else {
        let kind = regular_file::kind(&meta);
        Err(Error::io("read", path)(std::io::Error::other(format!(
            "{kind}, not a regular file"
        ))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_systems_of_a_mac() {
        for (name, is_reliable) in [
            ("apfs", true),
            ("hfs", true),
            ("smbfs", false),
            ("macfuse", false),
            ("apf", false),
        ] {
            // As the system fills the field.
            let mut field = [0; 16];
            field[..name.len()].copy_from_slice(name.as_bytes());
            assert_eq!(records_writes(&field), is_reliable, "{name}");
        }
        assert!(!records_writes(&[0; 16]));
    }

    #[test]
    fn a_change_within_the_coarsest_clock_is_not_old() {
        let at = |modified| Stamp {
            size: 1,
            modified,
            changed: (10, 0),
            inode: 1,
            device: 1,
        };
        let now = SystemTime::UNIX_EPOCH + Duration::new(20, 5);
        // APFS: one nanosecond before and at the limit.
        assert!(at((18, 4)).is_older_than(RACY, now));
        assert!(!at((18, 5)).is_older_than(RACY, now));
        // HFS+ writes whole seconds.
        assert!(!at((19, 0)).is_older_than(RACY, now));
    }
}
