//! A temporary store over a base store: its runs leave no trace in the base.

use cache::{ActionKey, ArtifactDigest, BlobRef, Store};
use runner_engine::Failure;
use std::collections::BTreeMap;
use std::path::Path;
use tempfile::TempDir;

/// The action key of a stage, and its outputs.
pub type Made = (ActionKey, BTreeMap<String, ArtifactDigest>);

/// A store in a temporary directory in the home of its base store.
pub struct Overlay<'a> {
    pub store: Store,
    base: &'a Store,
    dir: TempDir,
}

impl<'a> Overlay<'a> {
    pub fn new(base: &'a Store) -> Result<Self, Failure> {
        // In the same file system as the blobs, so that they can be hard-linked.
        let mut builder = tempfile::Builder::new();
        builder.prefix(".lookahead-");
        // Elsewhere if the store may only be read.
        let dir = builder
            .tempdir_in(base.root())
            .or_else(|_| builder.tempdir())
            .map_err(|err| Failure::caused("cannot create a directory in the store", &err))?;
        Ok(Self {
            store: Store::open(dir.path())?,
            base,
            dir,
        })
    }

    /// The base store.
    pub fn base(&self) -> &Store {
        self.base
    }

    /// A directory for files that are not part of the store.
    pub fn folder(&self) -> &Path {
        self.dir.path()
    }

    /// Adds a blob of the base store.
    pub fn blob(&self, blob: BlobRef) -> Result<(), Failure> {
        if self.store.has_here(blob) {
            return Ok(());
        }
        // Reads it, from the remote if it is not in the base store.
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

    /// Adds an artifact of the base store with all its blobs.
    pub fn artifact(&self, digest: ArtifactDigest) -> Result<(), Failure> {
        let artifact = self.base.artifact(digest)?;
        for entry in &artifact.entries {
            self.blob(entry.blob_ref())?;
        }
        self.store.put_artifact(&artifact)?;
        Ok(())
    }
}
