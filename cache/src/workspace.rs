//! Temporary directories.
//!
//! Not every file system can lock a directory, so a file beside it is locked: it is created before the
//! directory, locked for as long as the workspace exists, and removed after the directory. By this lock, `gc`
//! recognises the directory of a killed run.

use crate::artifact::check_path;
use crate::atomic_write::{TempFile, locked_temp_file};
use crate::digest::BlobDigest;
use crate::error::{Error, Result};
use crate::listing::remove_tree;
use crate::owner::Members;
use crate::shared;
use crate::store::Store;
use std::path::{Path, PathBuf};

/// The suffix of a workspace's lock file.
const LOCK: &str = ".lock";

/// An empty directory that is removed when the value is dropped, or else by the next `gc`.
#[derive(Debug)]
#[must_use = "the directory is removed when it is dropped"]
pub struct Workspace {
    path: PathBuf,
    /// The lock file, which is dropped, and so removed, after the directory.
    _lock: TempFile,
}

impl Store {
    /// Creates a workspace in the store.
    pub fn workspace(&self) -> Result<Workspace> {
        Workspace::create(&self.folder("tmp"), self.members())
    }
}

impl Workspace {
    /// Creates a workspace below another directory, where no `gc` looks for leftovers.
    pub fn new(dir: &Path) -> Result<Self> {
        Self::create(dir, None)
    }

    fn create(dir: &Path, members: Option<&Members>) -> Result<Self> {
        let lock = locked_temp_file(dir, tempfile::Builder::new().prefix("run-").suffix(LOCK), members)?;
        let path = lock.path().with_extension("");
        shared::create_dir(&path).map_err(Error::io("create", &path))?;
        Ok(Self { path, _lock: lock })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Links a blob of the store under a name below the directory, for readers that derive meaning from a
    /// file's name. The store knows the digest of such a link ([`Store::hash_file`]).
    pub fn link(&self, store: &Store, blob: BlobDigest, name: &str) -> Result<PathBuf> {
        check_path(name).map_err(|reason| Error::Entries {
            reason: format!("`{name}` {reason}"),
        })?;
        let path = self.path.join(name);
        if let Some(parent) = path.parent() {
            shared::create_dir_all(parent).map_err(Error::io("create", parent))?;
        }
        std::os::unix::fs::symlink(store.blob_path(blob), &path).map_err(Error::io("write", &path))?;
        Ok(path)
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // `gc` removes what is left.
        let _ = remove_tree(&self.path);
    }
}

/// The lock file of the workspace at `path`.
pub(crate) fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(LOCK);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, create_dir_all, read_dir, set_permissions, write};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_link_has_the_digest_of_its_blob() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let blob = store.put(b"bytes").unwrap();
        let workspace = store.workspace().unwrap();
        let link = workspace.link(&store, blob.blob, "0/SPX eod.csv").unwrap();
        assert_eq!(std::fs::read(&link).unwrap(), b"bytes");
        assert_eq!(store.hash_file(&link).unwrap(), blob);
        assert_eq!(store.status().unwrap().stat.count, 0);
        assert_eq!(store.rehash_file(&link).unwrap(), blob);
        assert!(workspace.link(&store, blob.blob, "../a.csv").is_err());
        drop(workspace);
        assert!(store.has(blob) && !link.exists());

        // A damaged blob is no blob, nor are its bytes hashed as those of a file.
        let workspace = store.workspace().unwrap();
        let link = workspace.link(&store, blob.blob, "a.csv").unwrap();
        set_permissions(store.blob_path(blob.blob), Permissions::from_mode(0o644)).unwrap();
        write(store.blob_path(blob.blob), "other").unwrap();
        let fresh = Store::open(dir.path()).unwrap();
        assert!(fresh.hash_file(&link).is_err());
    }

    #[test]
    fn a_workspace_is_removed_with_all_that_is_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::new(dir.path()).unwrap();
        let path = workspace.path().to_owned();
        create_dir_all(path.join("work/deep")).unwrap();
        write(path.join("work/deep/x"), "x").unwrap();
        set_permissions(path.join("work/deep"), Permissions::from_mode(0o500)).unwrap();
        std::os::unix::fs::symlink(dir.path(), path.join("link")).unwrap();
        drop(workspace);
        assert_eq!(read_dir(dir.path()).unwrap().count(), 0);
    }
}
