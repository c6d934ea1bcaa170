//! Advisory locks on files. The system releases a lock when its holder ends, however it ends; programs that
//! the holder starts do not inherit it. On a store that several hosts share, locks are leases
//! ([`lease`](crate::lease)).

use crate::error::{Error, Result};
use crate::fs::metadata;
use crate::fs::without_waiting;
use crate::lease::{Attempt, Lease};
use crate::life::Life;
use crate::obstacle::make_way_for_file;
use crate::owner::Members;
use crate::shared;
use crate::store::Store;
use rustix::fs::OFlags;
use std::fs::{File, Metadata, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// A lock that is held until the value is dropped.
#[derive(Debug)]
pub(crate) enum Locked {
    /// A lock of the system.
    File(LockedFile),
    Lease(Lease),
}

impl Locked {
    /// False once another may hold the lock.
    pub(crate) fn is_held(&self) -> bool {
        match self {
            Self::File(_) => true,
            Self::Lease(lease) => lease.is_held(),
        }
    }
}

/// A file that is locked until the value is dropped.
#[derive(Debug)]
pub(crate) struct LockedFile(File);

impl LockedFile {
    /// Another handle of the open file.
    pub(crate) fn try_clone(&self) -> io::Result<File> {
        self.0.try_clone()
    }
}

impl Drop for LockedFile {
    /// Unlocks explicitly: a child process that another thread has just forked has copies of all open files
    /// until it executes its program, and the system would keep the lock until the last copy is closed.
    fn drop(&mut self) {
        // If unlocking fails, closing the file releases the lock.
        let _ = self.0.unlock();
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

/// The longest interval between two attempts to get a lease: each asks the server.
const LEASE_POLL: Duration = Duration::from_millis(250);

/// Locks a file of the store, which is created if it does not exist; waits at most `wait` for another holder.
pub(crate) fn acquire(store: &Store, path: &Path, mode: Mode, wait: Duration) -> Result<Locked> {
    let began = Instant::now();
    let mut poll = POLL[0];
    loop {
        let (held, silent) = match attempt(store, path, mode)? {
            Attempt::Taken(lock) => return Ok(lock),
            Attempt::Held { holder, life } => (holder, life == Life::Silent),
        };
        // A holder that shows no sign of life may be dead, and is so, or not, within a known time.
        let silence = store.members().filter(|_| silent).map(Members::silence);
        let wait = silence.map_or(wait, |silence| silence.max(wait));
        // A blocking lock would have no deadline: the system restarts it after a signal.
        if began.elapsed() >= wait {
            return Err(Error::Locked {
                path: path.to_owned(),
                seconds: wait.as_secs(),
                holder: held.map(|holder| holder.to_string()),
            });
        }
        std::thread::sleep(poll);
        poll = (poll * 2).min(if store.is_shared() { LEASE_POLL } else { POLL[1] });
    }
}

/// Locks a file as [`acquire`] does, but without waiting; `None` while another holder has the lock.
pub(crate) fn try_acquire(store: &Store, path: &Path, mode: Mode) -> Result<Option<Locked>> {
    Ok(match attempt(store, path, mode)? {
        Attempt::Taken(lock) => Some(lock),
        Attempt::Held { .. } => None,
    })
}

/// Locks a file of the store that has contents, as [`acquire`] does, and opens it.
pub(crate) fn acquire_open(store: &Store, path: &Path, wait: Duration) -> Result<(File, Locked)> {
    open_locked(store, path, acquire(store, path, Mode::Exclusive, wait)?)
}

/// Locks a file that has contents, as [`try_acquire`] does, and opens it.
pub(crate) fn try_acquire_open(store: &Store, path: &Path) -> Result<Option<(File, Locked)>> {
    let lock = try_acquire(store, path, Mode::Exclusive)?;
    lock.map(|lock| open_locked(store, path, lock)).transpose()
}

fn open_locked(store: &Store, path: &Path, lock: Locked) -> Result<(File, Locked)> {
    let file = match &lock {
        Locked::File(file) => file.try_clone().map_err(Error::io("open", path))?,
        Locked::Lease(_) => open(store.root(), path)?,
    };
    Ok((file, lock))
}

fn attempt(store: &Store, path: &Path, mode: Mode) -> Result<Attempt<Locked>> {
    match (store.members(), path.file_name()) {
        (Some(members), Some(name)) => Ok(members.try_acquire(&name.to_string_lossy())?.map(Locked::Lease)),
        _ => Ok(match try_flock(store.root(), path, mode)? {
            Some(file) => Attempt::Taken(Locked::File(file)),
            None => Attempt::Held {
                holder: None,
                life: Life::Alive,
            },
        }),
    }
}

fn try_flock(root: &Path, path: &Path, mode: Mode) -> Result<Option<LockedFile>> {
    // `gc` may remove the file between opening and locking it, but not again and again.
    for _ in 0..ATTEMPTS {
        let file = open(root, path)?;
        let locked = match mode {
            Mode::Shared => file.try_lock_shared(),
            Mode::Exclusive => file.try_lock(),
        };
        match locked {
            Ok(()) => {
                let locked = LockedFile(file);
                if is_current(path, &locked.0)? {
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
/// not exist. On a store that several hosts share, all writers are owners, which `gc` excludes.
pub(crate) fn abandoned(store: &Store, path: &Path, meta: &Metadata, now: SystemTime) -> Option<File> {
    // Over NFS, an exclusive lock requires a writable file; a file about to be renamed is read-only.
    let open =
        |write: bool| without_waiting(File::options().read(true).write(write), OFlags::NOFOLLOW).open(path);
    let file = open(true).or_else(|_| open(false)).ok()?;
    if store.is_shared() {
        return Some(file);
    }
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
