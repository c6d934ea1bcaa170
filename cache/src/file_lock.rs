//! Advisory locks on files. The system releases them when their holder ends, however it ends; child processes do not
//! inherit them.

use crate::error::{Error, Result};
use crate::fs::metadata;
use crate::shared;
use std::fs::{File, Metadata, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

#[derive(Clone, Copy)]
pub(crate) enum Mode {
    Shared,
    Exclusive,
}

/// Locks a file, which is created if it does not exist, and waits for its holder.
pub(crate) fn acquire(path: &Path, mode: Mode) -> Result<File> {
    loop {
        let file = open(path)?;
        let locked = match mode {
            Mode::Shared => file.lock_shared(),
            Mode::Exclusive => file.lock(),
        };
        match locked {
            Ok(()) if is_current(path, &file)? => return Ok(file),
            Ok(()) => {}
            Err(err) if err.kind() == ErrorKind::Interrupted => {}
            Err(err) => return Err(Error::io("lock", path)(err)),
        }
    }
}

/// [`acquire`] without waiting; `None` while another holder has the lock.
pub(crate) fn try_acquire(path: &Path, mode: Mode) -> Result<Option<File>> {
    loop {
        let file = open(path)?;
        let locked = match mode {
            Mode::Shared => file.try_lock_shared(),
            Mode::Exclusive => file.try_lock(),
        };
        match locked {
            Ok(()) if is_current(path, &file)? => return Ok(Some(file)),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(err)) if err.kind() == ErrorKind::Interrupted => {}
            Err(TryLockError::Error(err)) => return Err(Error::io("lock", path)(err)),
        }
    }
}

/// On a file system without locks, the age from which a temporary file counts as abandoned.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);

/// The lock of a temporary file whose writer has exited; `None` while the writer runs, or when the file does not exist.
pub(crate) fn abandoned(path: &Path, meta: &Metadata, now: SystemTime) -> Option<File> {
    // Over NFS an exclusive lock needs a writable file; one that is about to be renamed is read-only.
    let file = File::options().read(true).write(true).open(path);
    let file = file.or_else(|_| File::open(path)).ok()?;
    match file.try_lock() {
        Ok(()) => Some(file),
        Err(TryLockError::WouldBlock) => None,
        Err(TryLockError::Error(_)) => {
            let age = meta.modified().ok().and_then(|time| now.duration_since(time).ok());
            age.is_some_and(|age| age > ABANDONED).then_some(file)
        }
    }
}

/// Opens a lock file, or creates it. Whoever may not write to it locks it all the same, except on NFS.
fn open(path: &Path) -> Result<File> {
    let open = || -> io::Result<File> {
        loop {
            let opened = File::options().read(true).write(true).open(path);
            let created = match opened {
                Err(err) if err.kind() == ErrorKind::NotFound => {
                    File::options().read(true).write(true).create_new(true).open(path)
                }
                Err(err) if matches!(err.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => {
                    return File::open(path).map_err(|_| err);
                }
                opened => return opened,
            };
            match created {
                Err(err) if err.kind() == ErrorKind::AlreadyExists => {}
                Ok(file) => return shared::share_file(path).map(|()| file),
                created => return created,
            }
        }
    };
    open().map_err(Error::io("open the lock", path))
}

/// True if the locked file still has its name: `gc` removes locks without a holder, and a lock on an unlinked file
/// excludes no process.
fn is_current(path: &Path, file: &File) -> Result<bool> {
    let held = file.metadata().map_err(Error::io("lock", path))?;
    Ok(metadata(path)?.is_some_and(|named| (named.dev(), named.ino()) == (held.dev(), held.ino())))
}
