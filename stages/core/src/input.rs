//! The inputs of a stage: artifacts of other stages, and files outside the store.

use crate::error::StageError;
use cache::{Artifact, ArtifactDigest, BlobDigest, RemoteFile};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A file outside the store that a stage reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The file's name relative to the source's root, with `/` between its parts; part of the key. Empty
    /// where a name has no meaning.
    pub name: String,
    /// The file's path on this machine; not part of the key.
    pub path: PathBuf,
    /// The digest of the file's bytes that is in the key; `None` before the key is made. The bytes that a
    /// stage reads must match it: a file may change after the key was made, and change back.
    #[serde(default)]
    pub digest: Option<BlobDigest>,
    /// The server's file, if the source is remote. `path` is then its URL until it is fetched, and afterwards
    /// the path of its contents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<RemoteFile>,
    /// True for code rather than data: a program that the stage runs, one of its modules, or the record of a
    /// package that it imports.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_program: bool,
}

impl Source {
    /// A local file whose digest is not computed yet.
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

    /// A file on a server, named by its URL.
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
    /// The artifact's digest.
    pub digest: ArtifactDigest,
    /// The artifact's manifest.
    pub artifact: Artifact,
}
