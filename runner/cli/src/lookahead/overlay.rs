//! A store of its own that borrows from another: what runs in it leaves nothing behind.

use cache::{ActionKey, ArtifactDigest, BlobRef, Store};
use runner_engine::Failure;
use std::collections::BTreeMap;
use std::path::Path;
use tempfile::TempDir;

/// The action of a stage, and its outputs.
pub type Made = (ActionKey, BTreeMap<String, ArtifactDigest>);

/// A store in a temporary folder beside the one it borrows from.
pub struct Overlay<'a> {
    pub store: Store,
    base: &'a Store,
    dir: TempDir,
}

impl<'a> Overlay<'a> {
    pub fn new(base: &'a Store) -> Result<Self, Failure> {
        // Beside the blobs, so that hard links reach them.
        let dir = tempfile::Builder::new()
            .prefix(".lookahead-")
            .tempdir_in(base.root())
            .map_err(|err| Failure::caused("cannot create a directory in the store", &err))?;
        Ok(Self {
            store: Store::open(dir.path())?,
            base,
            dir,
        })
    }

    /// What it borrows from.
    pub fn base(&self) -> &Store {
        self.base
    }

    /// Where files that are no part of the store may be put.
    pub fn folder(&self) -> &Path {
        self.dir.path()
    }

    /// Borrows a blob.
    pub fn blob(&self, blob: BlobRef) -> Result<(), Failure> {
        if self.store.has_here(blob) {
            return Ok(());
        }
        // It is read, and fetched where it is not here.
        let bytes = self.base.blob(blob.blob)?;
        let to = self.store.blob_path(blob.blob);
        if let Some(folder) = to.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|err| Failure::caused("cannot create a directory in the store", &err))?;
        }
        if std::fs::hard_link(self.base.blob_path(blob.blob), &to).is_err() {
            self.store.put(&bytes)?;
        }
        Ok(())
    }

    /// Borrows an artifact with all that it names.
    pub fn artifact(&self, digest: ArtifactDigest) -> Result<(), Failure> {
        let artifact = self.base.artifact(digest)?;
        for entry in &artifact.entries {
            self.blob(entry.blob_ref())?;
        }
        self.store.put_artifact(&artifact)?;
        Ok(())
    }
}
