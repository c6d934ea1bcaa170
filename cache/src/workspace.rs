//! Folders for work that is thrown away at its end.
//!
//! A folder cannot be locked on every file system, so that a file beside it is: made before it, locked as long as its user
//! lives, and removed after it. That is how `gc` tells the folder of a run that was killed.

use crate::publish::held;
use crate::walk::remove_tree;
use crate::{Error, Result, Store};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// What the name of the file that locks a workspace has more than the folder's.
const LOCK: &str = ".lock";

/// An empty folder that goes away when this is dropped, or else at the next `gc`.
#[derive(Debug)]
#[must_use = "the folder is removed when it is dropped"]
pub struct Workspace {
    path: PathBuf,
    /// Dropped, and so removed, after the folder.
    _lock: NamedTempFile,
}

impl Store {
    /// A workspace in the store.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn workspace(&self) -> Result<Workspace> {
        Workspace::new(&self.folder("tmp"))
    }
}

impl Workspace {
    /// A workspace elsewhere, where no `gc` looks for leftovers.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(dir: &Path) -> Result<Self> {
        let lock = held(dir, tempfile::Builder::new().prefix("run-").suffix(LOCK))?;
        let path = lock.path().with_extension("");
        std::fs::create_dir(&path).map_err(Error::io("create", &path))?;
        Ok(Self { path, _lock: lock })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // What cannot be removed now is left to `gc`.
        let _ = remove_tree(&self.path);
    }
}

/// The file that locks the workspace at `path`.
pub(crate) fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(LOCK);
    name.into()
}
