//! Leases on actions and on the store as a whole.

use crate::digest::ActionKey;
use crate::error::{Error, Result};
use crate::file_lock::{Locked, Mode, acquire, try_acquire};
use crate::fs::if_allowed;
use crate::owner::Owner;
use crate::store::Store;
use crate::visibility::refresh_folder_of;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The longest wait for a lease: a process that holds a lease for longer hangs.
const WAIT: Duration = Duration::from_secs(3600);

/// The lease on one action; no other thread or process holds it until the value is dropped.
#[derive(Debug)]
#[must_use = "the lock is released when it is dropped"]
pub struct ActionLock {
    lock: Locked,
}

/// A shared lock that excludes `gc` until it is dropped. Any number of guards may be held at once.
#[derive(Debug)]
#[must_use = "the store is released when it is dropped"]
pub struct StoreGuard {
    held: Guarded,
}

#[derive(Debug)]
enum Guarded {
    Locked(Locked),
    /// On a store that several hosts share: whoever is an owner there excludes `gc`.
    Owner(Arc<Owner>),
    /// A user who may only read a store that nobody has locked yet.
    ReadOnly,
}

impl ActionLock {
    /// False once the lock may have another holder: on a store that several hosts share, a process that could
    /// not renew its lease in time has lost it, for good. Ask before the result of long work is recorded.
    pub fn is_held(&self) -> bool {
        self.lock.is_held()
    }
}

impl StoreGuard {
    /// False once `gc` may run, as [`ActionLock::is_held`].
    pub fn is_held(&self) -> bool {
        match &self.held {
            Guarded::Locked(lock) => lock.is_held(),
            Guarded::Owner(owner) => owner.is_alive(),
            Guarded::ReadOnly => true,
        }
    }

    /// The owner that excludes others, on a store that several hosts share.
    pub(crate) fn owner(&self) -> Option<&Owner> {
        match &self.held {
            Guarded::Owner(owner) => Some(owner),
            Guarded::Locked(_) | Guarded::ReadOnly => None,
        }
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
        let lock = acquire(self, &self.action_lock_path(key), Mode::Exclusive, WAIT)?;
        Ok(self.locked_action(key, lock))
    }

    /// Acquires the lease on an action; `None` when another thread or process holds it.
    pub fn try_lock(&self, key: ActionKey) -> Result<Option<ActionLock>> {
        let lock = try_acquire(self, &self.action_lock_path(key), Mode::Exclusive)?;
        Ok(lock.map(|lock| self.locked_action(key, lock)))
    }

    /// The next look-up of the action sees what earlier holders of the lock recorded, also on other hosts.
    fn locked_action(&self, key: ActionKey, lock: Locked) -> ActionLock {
        if self.is_shared() {
            refresh_folder_of(&self.action_path(key));
        }
        ActionLock { lock }
    }

    /// Excludes `gc` until the guard is dropped. Waits for a running `gc`.
    ///
    /// # Errors
    /// When the lock's file cannot be created or locked, or its holder keeps it for an hour
    /// ([`Error::Locked`]).
    pub fn guard(&self) -> Result<StoreGuard> {
        let guarded = match self.members() {
            Some(members) => members.owner().map(Guarded::Owner),
            None => acquire(self, &self.store_lock_path(), Mode::Shared, WAIT).map(Guarded::Locked),
        };
        let held = if_allowed(guarded)?.unwrap_or(Guarded::ReadOnly);
        Ok(StoreGuard { held })
    }

    /// Acquires exclusive use of the store.
    ///
    /// # Errors
    /// [`Error::Busy`] when a run of this or another process uses the store.
    pub(crate) fn exclusive(&self) -> Result<StoreGuard> {
        if let Some(members) = self.members() {
            let held = Guarded::Owner(members.exclusive()?);
            return Ok(StoreGuard { held });
        }
        match try_acquire(self, &self.store_lock_path(), Mode::Exclusive)? {
            Some(lock) => Ok(StoreGuard {
                held: Guarded::Locked(lock),
            }),
            None => Err(self.busy(None)),
        }
    }

    pub(crate) fn busy(&self, host: Option<String>) -> Error {
        Error::Busy {
            path: self.root().to_owned(),
            host,
        }
    }

    /// Locks a maintenance task (`recovery`, `flush`); waits for another process that performs it.
    pub(crate) fn task_lock(&self, task: &str) -> Result<Locked> {
        acquire(self, &self.folder("locks").join(task), Mode::Exclusive, WAIT)
    }

    /// Locks a maintenance task as [`Store::task_lock`] does, but without waiting.
    pub(crate) fn try_task_lock(&self, task: &str) -> Result<Option<Locked>> {
        try_acquire(self, &self.folder("locks").join(task), Mode::Exclusive)
    }
}
