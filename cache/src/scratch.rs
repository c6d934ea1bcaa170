//! Directories for checkpoints of unfinished work.

use crate::digest::{KeyHasher, MemoKey};
use crate::error::{Error, Result};
use crate::file_lock::{Locked, Mode, acquire};
use crate::obstacle::create_directory;
use crate::store::{Store, sharded};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The wait for a directory's last holder: the worker process of a killed run lives a moment longer.
const WAIT: Duration = Duration::from_secs(3);

/// A directory for checkpoints of unfinished work, which no other thread or process has until the value is
/// dropped.
#[derive(Debug)]
#[must_use = "the directory is released when it is dropped"]
pub struct Scratch {
    path: PathBuf,
    lock: Locked,
}

impl Scratch {
    /// False once another may have the directory, as [`ActionLock::is_held`](crate::ActionLock::is_held).
    pub fn is_held(&self) -> bool {
        self.lock.is_held()
    }
}

impl Deref for Scratch {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl Store {
    /// The path of the directory of [`Store::scratch`], whether or not it exists.
    pub fn scratch_path(&self, key: MemoKey) -> PathBuf {
        sharded(&self.folder("scratch"), &key.to_hex())
    }

    /// A directory for checkpoints of unfinished work. While one action has the directory of a key, another
    /// of that key gets the next free one; a holder that shows no sign of life, on a store that several hosts
    /// share, is waited for until it is dead or gives one. It outlives a crash, and `gc` drops it once it is
    /// old. A file being written is named `….tmp`, so that `gc` recognises a leftover.
    pub fn scratch(&self, mut key: MemoKey) -> Result<Scratch> {
        let mut wait = WAIT;
        loop {
            let lock = self.folder("locks").join(key.to_hex());
            match acquire(self, &lock, Mode::Exclusive, wait) {
                Ok(lock) => {
                    let path = self.scratch_path(key);
                    create_directory(self.root(), &path)?;
                    return Ok(Scratch { path, lock });
                }
                Err(Error::Locked { .. }) => {}
                Err(err) => return Err(err),
            }
            wait = Duration::ZERO;
            key = KeyHasher::new("runner 2026-11 next scratch v1")
                .field(key.as_bytes())
                .memo_key();
        }
    }
}
