//! Temporary stores over a base store: their runs leave no trace in the base.
//!
//! The runs on changed data share blobs and memos with one another, and none with the base: a partition that
//! two versions have in common is computed once, and what the first run has cached cannot hide that it
//! depends on later data.

use cache::{ArtifactDigest, BlobDigest, BlobRef, RecordId, Store};
use runner_engine::Failure;
use std::collections::BTreeSet;
use std::path::Path;
use tempfile::TempDir;

/// The most bytes of memos that are kept for later versions.
const MEMOS: u64 = 4 << 30;

fn failed(err: std::io::Error) -> Failure {
    Failure::caused("cannot write a temporary store", &err)
}

/// The directory of all temporary stores of a check, in the home of the base store.
pub(crate) struct Pool<'a> {
    base: &'a Store,
    dir: TempDir,
}

impl<'a> Pool<'a> {
    pub(crate) fn new(base: &'a Store) -> Result<Self, Failure> {
        // In the same file system as the blobs, so that they can be hard-linked.
        let mut builder = tempfile::Builder::new();
        builder.prefix(".lookahead-");
        // Elsewhere if the store may only be read.
        let dir = builder
            .tempdir_in(base.root())
            .or_else(|_| builder.tempdir())
            .map_err(|err| Failure::caused("cannot create a directory in the store", &err))?;
        for folder in ["blobs", "memos"] {
            std::fs::create_dir(dir.path().join(folder)).map_err(failed)?;
        }
        Ok(Self { base, dir })
    }

    /// Drops the outputs of the versions so far; their memos stay. No version may be in use.
    pub(crate) fn prune(&self) -> Result<(), Failure> {
        let store = Store::open(self.dir.path())?;
        let (mut kept, mut bytes) = (BTreeSet::new(), 0);
        for record in store.records()? {
            if let RecordId::Memo(key) = record
                && let Some(value) = store.peek_memo(key)?
            {
                bytes += value.size;
                kept.insert(value.blob);
            }
        }
        if bytes > MEMOS {
            kept.clear();
        }
        for shard in std::fs::read_dir(self.dir.path().join("blobs")).map_err(failed)? {
            let shard = shard.map_err(failed)?;
            for file in std::fs::read_dir(shard.path()).map_err(failed)? {
                let file = file.map_err(failed)?;
                let name = format!(
                    "{}{}",
                    shard.file_name().to_string_lossy(),
                    file.file_name().to_string_lossy()
                );
                if name.parse::<BlobDigest>().is_ok_and(|blob| !kept.contains(&blob)) {
                    std::fs::remove_file(file.path()).map_err(failed)?;
                }
            }
        }
        Ok(())
    }
}

/// A temporary store of a version of the data.
pub(crate) struct Overlay<'a> {
    pub store: Store,
    base: &'a Store,
    dir: TempDir,
}

impl<'a> Overlay<'a> {
    pub(crate) fn new(pool: &Pool<'a>) -> Result<Self, Failure> {
        let dir = tempfile::Builder::new().tempdir_in(pool.dir.path()).map_err(failed)?;
        for folder in ["blobs", "memos"] {
            std::os::unix::fs::symlink(pool.dir.path().join(folder), dir.path().join(folder))
                .map_err(failed)?;
        }
        Ok(Self {
            store: Store::open(dir.path())?,
            base: pool.base,
            dir,
        })
    }

    pub(crate) fn base(&self) -> &'a Store {
        self.base
    }

    /// A directory for files that are not part of the store.
    pub(crate) fn folder(&self) -> &Path {
        self.dir.path()
    }

    /// Adds a blob of the base store.
    pub(crate) fn blob(&self, blob: BlobRef) -> Result<(), Failure> {
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
    pub(crate) fn artifact(&self, digest: ArtifactDigest) -> Result<(), Failure> {
        let artifact = self.base.artifact(digest)?;
        for entry in &artifact.entries {
            self.blob(entry.blob_ref())?;
        }
        self.store.put_artifact(&artifact)?;
        Ok(())
    }
}
