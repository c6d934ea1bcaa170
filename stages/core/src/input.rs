//! The inputs of a stage: artifacts of other stages, and files outside the store.

use crate::error::StageError;
use cache::{Artifact, ArtifactDigest, BlobDigest, RemoteFile};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A file outside the store that a stage reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Its name relative to the source's root, with `/` between its parts; part of the key. Empty where it
    /// means nothing.
    pub name: String,
    /// Its path on this machine; not part of the key.
    pub path: PathBuf,
    /// The digest of its bytes that is in the key; `None` before the key is made. The bytes that a stage
    /// reads must have it: a file may change after the key was made, and change back.
    #[serde(default)]
    pub digest: Option<BlobDigest>,
    /// The file on a server that it is; `path` leads to its contents once they are fetched, and is its URL
    /// before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<RemoteFile>,
    /// True for a program that the stage runs, a module of it, and the record of a package that it imports:
    /// no data.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_program: bool,
}

impl Source {
    /// A file whose digest is not computed yet.
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            path: path.into(),
            digest: None,
            remote: None,
            is_program: false,
        }
    }

    /// A program that the stage runs, or a part of one.
    pub fn program(name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self {
            is_program: true,
            ..Self::new(name, path)
        }
    }

    /// A file on a server, by the name in its URL.
    pub fn remote(file: RemoteFile) -> Self {
        Self {
            name: file.file_name(),
            path: PathBuf::from(&file.url),
            digest: file.pinned,
            remote: Some(file),
            is_program: false,
        }
    }

    /// Refuses bytes whose digest differs from the one in the key.
    ///
    /// # Errors
    /// When the file has changed since the key was made.
    pub fn check(&self, read: BlobDigest) -> Result<(), StageError> {
        if self.digest.is_none_or(|digest| digest == read) {
            return Ok(());
        }
        Err(self.changed())
    }

    /// The error for a file that has changed since the key was made.
    pub fn changed(&self) -> StageError {
        StageError::new(format!(
            "`{}` changed while the stage was reading it",
            self.path.display()
        ))
        .hint("run it again once the file is complete")
    }
}

/// An artifact that arrives at an input port.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its digest.
    pub digest: ArtifactDigest,
    /// Its manifest.
    pub artifact: Artifact,
}
