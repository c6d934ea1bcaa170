//! Leases on actions and on the store as a whole.

use crate::digest::ActionKey;
use crate::error::{Error, Result};
use crate::file_lock::{Locked, Mode, acquire, try_acquire};
use crate::fs::if_allowed;
use crate::store::Store;
use std::path::PathBuf;
use std::time::Duration;

/// The longest wait for a lease: a process that holds a lease for longer hangs.
const WAIT: Duration = Duration::from_secs(3600);

/// The lease on one action; no other thread or process holds it until the value is dropped.
#[derive(Debug)]
#[must_use = "the lock is released when it is dropped"]
pub struct ActionLock {
    _file: Locked,
}

/// A shared lock that excludes `gc` until it is dropped. Any number of guards may be held at once.
#[derive(Debug)]
#[must_use = "the store is released when it is dropped"]
pub struct StoreGuard {
    /// `None` for a user who may only read a store that nobody has locked yet.
    _file: Option<Locked>,
}

impl ActionLock {
    /// False once the lock may have another holder: on a store that several hosts share, a process that could
    /// not renew its lease in time has lost it. Ask before the result of long work is recorded.
    pub fn is_held(&self) -> bool {
        true
    }
}

impl StoreGuard {
    /// False once `gc` may run, as [`ActionLock::is_held`].
    pub fn is_held(&self) -> bool {
        true
    }
}

impl Store {
    pub(crate) fn action_lock_path(&self, key: ActionKey) -> PathBuf {
        self.folder("locks").join(key.to_hex())
    }

    fn store_lock_path(&self) -> PathBuf {
        self.folder("locks").join("store")
    }

    /// Waits for the lease on an action. Look the action up again afterwards: the earlier holder may have
    /// computed it.
    ///
    /// # Errors
    /// When the lock's file cannot be created or locked, or its holder keeps it for an hour
    /// ([`Error::Locked`]).
    pub fn lock(&self, key: ActionKey) -> Result<ActionLock> {
        let _file = acquire(self.root(), &self.action_lock_path(key), Mode::Exclusive, WAIT)?;
        Ok(ActionLock { _file })
    }

    /// Acquires the lease on an action; `None` when another thread or process holds it.
    pub fn try_lock(&self, key: ActionKey) -> Result<Option<ActionLock>> {
        let file = try_acquire(self.root(), &self.action_lock_path(key), Mode::Exclusive)?;
        Ok(file.map(|_file| ActionLock { _file }))
    }

    /// Excludes `gc` until the guard is dropped. Waits for a running `gc`.
    ///
    /// # Errors
    /// When the lock's file cannot be created or locked, or its holder keeps it for an hour
    /// ([`Error::Locked`]).
    pub fn guard(&self) -> Result<StoreGuard> {
        let _file = if_allowed(acquire(self.root(), &self.store_lock_path(), Mode::Shared, WAIT))?;
        Ok(StoreGuard { _file })
    }

    /// Acquires exclusive use of the store.
    ///
    /// # Errors
    /// [`Error::Busy`] when a run of this or another process uses the store.
    pub(crate) fn exclusive(&self) -> Result<StoreGuard> {
        match try_acquire(self.root(), &self.store_lock_path(), Mode::Exclusive)? {
            Some(file) => Ok(StoreGuard { _file: Some(file) }),
            None => Err(Error::Busy {
                path: self.root().to_owned(),
                host: None,
            }),
        }
    }

    /// Locks a maintenance task (`recovery`, `flush`); waits for another process that performs it.
    pub(crate) fn task_lock(&self, task: &str) -> Result<Locked> {
        acquire(self.root(), &self.folder("locks").join(task), Mode::Exclusive, WAIT)
    }

    /// Locks a maintenance task as [`Store::task_lock`] does, but without waiting.
    pub(crate) fn try_task_lock(&self, task: &str) -> Result<Option<Locked>> {
        try_acquire(self.root(), &self.folder("locks").join(task), Mode::Exclusive)
    }
}
