//! Building artifacts file by file.

use crate::artifact::{Artifact, Entry};
use crate::blob::BlobRef;
use crate::digest::ArtifactDigest;
use crate::error::Result;
use crate::store::Store;
use serde_json::Value;

/// Collects the files of an artifact.
pub struct ArtifactBuilder<'a> {
    store: &'a Store,
    artifact: Artifact,
}

impl<'a> ArtifactBuilder<'a> {
    /// Starts an artifact of the given type, without files.
    pub fn new(store: &'a Store, kind: &str, meta: Value) -> Self {
        Self {
            store,
            artifact: Artifact {
                kind: kind.to_owned(),
                meta,
                entries: Vec::new(),
            },
        }
    }

    /// Adds a file with these bytes.
    pub fn bytes(&mut self, path: &str, bytes: &[u8]) -> Result<BlobRef> {
        let blob = self.store.put(bytes)?;
        self.blob(path, blob);
        Ok(blob)
    }

    /// Adds a file whose bytes are already in the store.
    pub fn blob(&mut self, path: &str, blob: BlobRef) {
        self.artifact.entries.push(Entry {
            path: path.to_owned(),
            size: blob.size,
            blob: blob.blob,
        });
    }

    /// Stores the manifest.
    pub fn finish(self) -> Result<ArtifactDigest> {
        self.store.put_artifact(&self.artifact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::BlobDigest;
    use crate::error::Error;

    #[test]
    fn a_bad_path_is_neither_stored_nor_read() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let bad = Artifact {
            kind: "t".to_owned(),
            meta: Value::Null,
            entries: vec![Entry {
                path: "../x".to_owned(),
                size: 0,
                blob: BlobDigest::from_bytes([0; 32]),
            }],
        };
        let err = store.put_artifact(&bad).unwrap_err();
        assert!(err.to_string().contains("entry `../x` has a part `.` or `..`"), "{err}");
        let stored = store.put(bad.canonical().as_bytes()).unwrap();
        let err = store
            .artifact(ArtifactDigest::from_bytes(*stored.blob.as_bytes()))
            .unwrap_err();
        assert!(matches!(err, Error::Manifest { .. }), "{err}");
    }
}
