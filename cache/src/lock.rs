//! Advisory locks. The system releases them when their holder ends, however it ends; processes that it starts do not
//! inherit them.

use crate::publish::metadata;
use crate::{ActionKey, Error, Result, Store};
use std::fs::{File, Metadata, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The right to compute one action; no other thread or process has it until this is dropped.
#[derive(Debug)]
#[must_use = "the lock is released when it is dropped"]
pub struct ActionLock {
    _file: File,
}

/// Keeps `gc` away from the store until it is dropped. Any number may be held at once.
#[derive(Debug)]
#[must_use = "the store is released when it is dropped"]
pub struct StoreGuard {
    _file: File,
}

#[derive(Clone, Copy)]
enum Mode {
    Shared,
    Exclusive,
}

impl Store {
    pub(crate) fn action_lock_path(&self, key: ActionKey) -> PathBuf {
        self.folder("locks").join(key.to_hex())
    }

    fn store_lock_path(&self) -> PathBuf {
        self.folder("locks").join("store")
    }

    /// Waits for the right to compute an action. Look the action up again once it is there: who held it before may have
    /// computed it.
    ///
    /// # Errors
    /// When the lock's file cannot be made or locked.
    pub fn lock(&self, key: ActionKey) -> Result<ActionLock> {
        let _file = wait(&self.action_lock_path(key), Mode::Exclusive)?;
        Ok(ActionLock { _file })
    }

    /// The right to compute an action, or `None` when somebody else has it.
    ///
    /// # Errors
    /// When the lock's file cannot be made or locked.
    pub fn try_lock(&self, key: ActionKey) -> Result<Option<ActionLock>> {
        let file = attempt(&self.action_lock_path(key), Mode::Exclusive)?;
        Ok(file.map(|_file| ActionLock { _file }))
    }

    /// Says that a run uses the store: until this is dropped, `gc` refuses to work. Waits for one that is at work.
    ///
    /// # Errors
    /// When the lock's file cannot be made or locked.
    pub fn guard(&self) -> Result<StoreGuard> {
        let _file = wait(&self.store_lock_path(), Mode::Shared)?;
        Ok(StoreGuard { _file })
    }

    /// The store for oneself alone.
    ///
    /// # Errors
    /// [`Error::Busy`] when a run uses it, of this process or another.
    pub(crate) fn exclusive(&self) -> Result<StoreGuard> {
        match attempt(&self.store_lock_path(), Mode::Exclusive)? {
            Some(_file) => Ok(StoreGuard { _file }),
            None => Err(Error::Busy {
                path: self.root().to_owned(),
            }),
        }
    }

    /// Waits until no other process recovers the store.
    pub(crate) fn recovery_lock(&self) -> Result<File> {
        wait(&self.folder("locks").join("recovery"), Mode::Exclusive)
    }

    /// Waits until no other process flushes the store.
    pub(crate) fn flush_lock(&self) -> Result<File> {
        wait(&self.folder("locks").join("flush"), Mode::Exclusive)
    }
}

fn wait(path: &Path, mode: Mode) -> Result<File> {
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

/// A file that only its holder has open and locked, made if it is not there. Waits for whoever holds it.
pub(crate) fn hold(path: &Path) -> Result<File> {
    wait(path, Mode::Exclusive)
}

pub(crate) fn try_exclusive(path: &Path) -> Result<Option<File>> {
    attempt(path, Mode::Exclusive)
}

fn attempt(path: &Path, mode: Mode) -> Result<Option<File>> {
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

/// Without locks, a file of this age has lost its writer.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);

/// The lock of a file whose writer held it and is gone; `None` while it is at work, or when the file is gone itself.
pub(crate) fn abandoned(path: &Path, meta: &Metadata, now: SystemTime) -> Option<File> {
    // Over NFS only what can be written can be locked for oneself alone; what is about to get its name cannot.
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

fn open(path: &Path) -> Result<File> {
    let open = || -> io::Result<File> {
        File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
    };
    open().map_err(Error::io("open the lock", path))
}

/// Whether the locked file still has its name: `gc` removes locks that nobody holds, and a lock on a file without a
/// name keeps nobody out.
fn is_current(path: &Path, file: &File) -> Result<bool> {
    let held = file.metadata().map_err(Error::io("lock", path))?;
    Ok(metadata(path)?.is_some_and(|named| (named.dev(), named.ino()) == (held.dev(), held.ino())))
}
