//! Advisory locks on files. The system releases a lock when its holder ends, however it ends; programs that
//! the holder starts do not inherit it.

use crate::error::{Error, Result};
use crate::fs::metadata;
use crate::fs::without_waiting;
use crate::obstacle::make_way_for_file;
use crate::shared;
use rustix::fs::OFlags;
use std::fs::{File, Metadata, TryLockError};
use std::io::{self, ErrorKind};
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// A file that is locked until the value is dropped.
#[derive(Debug)]
pub(crate) struct Locked(File);

impl Drop for Locked {
    /// Unlocks explicitly: a child process that another thread has just forked has copies of all open files
    /// until it executes its program, and the system would keep the lock until the last copy is closed.
    fn drop(&mut self) {
        // If unlocking fails, closing the file releases the lock.
        let _ = self.0.unlock();
    }
}

impl Deref for Locked {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.0
    }
}

#[derive(Clone, Copy)]
pub(crate) enum Mode {
    Shared,
    Exclusive,
}

/// The number of attempts to lock a file whose name `gc` removes concurrently.
const ATTEMPTS: usize = 100;

/// The first and the longest interval between two attempts to get a lock.
const POLL: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(20)];

/// Locks a file of the store at `root`, which is created if it does not exist; waits at most `wait` for
/// another holder.
pub(crate) fn acquire(root: &Path, path: &Path, mode: Mode, wait: Duration) -> Result<Locked> {
    let began = Instant::now();
    let mut poll = POLL[0];
    loop {
        if let Some(file) = try_acquire(root, path, mode)? {
            return Ok(file);
        }
        // A blocking lock would have no deadline: the system restarts it after a signal.
        if began.elapsed() >= wait {
            return Err(Error::Locked {
                path: path.to_owned(),
                seconds: wait.as_secs(),
            });
        }
        std::thread::sleep(poll);
        poll = (poll * 2).min(POLL[1]);
    }
}

/// Locks a file as [`acquire`] does, but without waiting; `None` while another holder has the lock.
pub(crate) fn try_acquire(root: &Path, path: &Path, mode: Mode) -> Result<Option<Locked>> {
    // `gc` may remove the file between opening and locking it, but not again and again.
    for _ in 0..ATTEMPTS {
        let file = open(root, path)?;
        let locked = match mode {
            Mode::Shared => file.try_lock_shared(),
            Mode::Exclusive => file.try_lock(),
        };
        match locked {
            Ok(()) => {
                let locked = Locked(file);
                if is_current(path, &locked)? {
                    return Ok(Some(locked));
                }
            }
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(err)) if err.kind() == ErrorKind::Interrupted => {}
            Err(TryLockError::Error(err)) => return Err(Error::io("lock", path)(err)),
        }
    }
    Ok(None)
}

/// On a file system without locks, the age from which a temporary file counts as abandoned.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);

/// The lock of a temporary file whose writer has exited; `None` while the writer runs, or when the file does
/// not exist.
pub(crate) fn abandoned(path: &Path, meta: &Metadata, now: SystemTime) -> Option<File> {
    // Over NFS, an exclusive lock requires a writable file; a file about to be renamed is read-only.
    let open =
        |write: bool| without_waiting(File::options().read(true).write(write), OFlags::NOFOLLOW).open(path);
    let file = open(true).or_else(|_| open(false)).ok()?;
    match file.try_lock() {
        Ok(()) => Some(file),
        Err(TryLockError::WouldBlock) => None,
        Err(TryLockError::Error(_)) => {
            let age = meta.modified().ok().and_then(|time| now.duration_since(time).ok());
            age.is_some_and(|age| age > ABANDONED).then_some(file)
        }
    }
}

/// Opens a lock file, or creates it. Anything but a regular file is moved away: a lock on a link would lock
/// another file, and some systems support no locks on a FIFO. A user without write permission can still lock
/// it, except on NFS.
fn open(root: &Path, path: &Path) -> Result<File> {
    let existing =
        |write: bool| without_waiting(File::options().read(true).write(write), OFlags::NOFOLLOW).open(path);
    let open = || -> io::Result<File> {
        loop {
            let created = match existing(true) {
                Err(err) if err.kind() == ErrorKind::NotFound => {
                    File::options().read(true).write(true).create_new(true).open(path)
                }
                Err(err)
                    if matches!(err.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) =>
                {
                    return existing(false).map_err(|_| err);
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
    let is_regular = |file: &File| file.metadata().is_ok_and(|meta| meta.is_file());
    match open() {
        Ok(file) if is_regular(&file) => Ok(file),
        _ => {
            make_way_for_file(root, path)?;
            open().map_err(Error::io("open the lock", path))
        }
    }
}

/// True if the locked file still has its name: `gc` removes locks without a holder, and a lock on an unlinked
/// file excludes no process.
fn is_current(path: &Path, file: &File) -> Result<bool> {
    let held = file.metadata().map_err(Error::io("lock", path))?;
    Ok(metadata(path)?.is_some_and(|named| (named.dev(), named.ino()) == (held.dev(), held.ino())))
}
