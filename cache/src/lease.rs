//! Locks as files, on a store that several hosts share, where the system has no locks between hosts.
//!
//! The holders of a lock are numbered: `KEY.1`, `KEY.2`, …, of which the highest counts. A holder creates its
//! file by a hard link, of which the server lets one win; it holds its owner's name. Empty, it is free: the
//! holder truncates it on release. The next number may be taken when the highest is free, or its owner dead.
//! No file is removed within an epoch ([`owner`](crate::owner)), so that a stale view of the directory leads
//! to a number that is taken, and never to a second holder.

use crate::error::{Error, Result};
use crate::flush::flush;
use crate::life::{Life, Owned, read_fresh};
use crate::owner::{Members, Owner, write_new};
use crate::shared;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The number of attempts to take a lock that others take at the same time.
const ATTEMPTS: usize = 100;

/// A lock that is held until the value is dropped, or its owner is lost.
#[derive(Debug)]
pub(crate) struct Lease {
    owner: Arc<Owner>,
    path: PathBuf,
}

impl Lease {
    /// False from the moment on at which another may hold the lock.
    pub(crate) fn is_held(&self) -> bool {
        self.owner.is_alive()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.is_held() {
            // It needs no space on the disk. If it fails, the lock is free when this process has ended.
            let _ = File::options().write(true).truncate(true).open(&self.path);
        }
    }
}

/// The result of an attempt to take a lock.
pub(crate) enum Attempt<T> {
    Taken(T),
    /// Another has it.
    Held {
        holder: Option<Owned>,
        life: Life,
    },
}

impl<T> Attempt<T> {
    pub(crate) fn map<U>(self, map: impl FnOnce(T) -> U) -> Attempt<U> {
        match self {
            Self::Taken(lock) => Attempt::Taken(map(lock)),
            Self::Held { holder, life } => Attempt::Held { holder, life },
        }
    }
}

impl Members {
    /// Takes a lock, or says who has it.
    pub(crate) fn try_acquire(&self, name: &str) -> Result<Attempt<Lease>> {
        let owner = self.owner()?;
        let locks = owner.locks(&self.root);
        let path = |n: u64| locks.join(format!("{name}.{n}"));
        let (mut n, mut holder) = (0, Vec::new());
        for _ in 0..ATTEMPTS {
            while let Some((bytes, _)) = read_fresh(&path(n + 1))? {
                (n, holder) = (n + 1, bytes);
            }
            let (life, owned) = match holder.is_empty() {
                true => (Life::Dead, None),
                false => self.look(&String::from_utf8_lossy(&holder))?,
            };
            if life != Life::Dead {
                return Ok(Attempt::Held { holder: owned, life });
            }
            let path = path(n + 1);
            if self.link(&owner, &path)? {
                let lease = Lease { owner, path };
                // Between the look at the earlier holder and the link, this process may have been stopped.
                return Ok(match lease.is_held() {
                    true => Attempt::Taken(lease),
                    false => Attempt::Held {
                        holder: None,
                        life: Life::Silent,
                    },
                });
            }
        }
        Ok(Attempt::Held {
            holder: None,
            life: Life::Alive,
        })
    }

    /// Creates a lock's file with the name of its owner in it. Returns false if the file exists.
    fn link(&self, owner: &Owner, path: &Path) -> Result<bool> {
        let temp = self.root.join("tmp").join(owner.temp_name());
        let file = write_new(&temp, owner.id().as_bytes())?;
        // A network file system may report only now that there is no space; an empty file would be free.
        let linked = match flush(&file).map_err(Error::io("flush", &temp)) {
            Ok(()) => link(&temp, path),
            Err(err) => Err(err),
        };
        drop(file);
        let _ = std::fs::remove_file(&temp);
        linked
    }
}

fn link(temp: &Path, path: &Path) -> Result<bool> {
    let mut linked = std::fs::hard_link(temp, path);
    if let (Err(err), Some(folder)) = (&linked, path.parent())
        && err.kind() == ErrorKind::NotFound
    {
        // The first lock of an epoch.
        shared::create_dir_all(folder).map_err(Error::io("create", folder))?;
        linked = std::fs::hard_link(temp, path);
    }
    match linked {
        Ok(()) => Ok(true),
        // A network file system repeats a request whose answer was lost: it finds its own link then.
        Err(err) if err.kind() == ErrorKind::AlreadyExists => {
            let meta = File::open(temp).and_then(|file| file.metadata());
            Ok(meta.map_err(Error::io("read", temp))?.nlink() == 2)
        }
        Err(err) => Err(Error::io("link", path)(err)),
    }
}

#[cfg(test)]
mod tests;
