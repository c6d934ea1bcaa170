//! Errors of a store.

use crate::digest::BlobDigest;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure of the store or of the machine under it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file operation failed.
    #[error("cannot {what} `{}`", path.display())]
    Io {
        /// The operation, as a verb (`write`, `read`).
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A blob does not exist.
    #[error("blob {digest} is missing")]
    Missing {
        /// The digest of the object, in hex.
        digest: String,
    },
    /// Bytes that do not match their digest or checksum. The damaged file has been quarantined, so that the
    /// action that produced it runs again.
    #[error("{what} {digest} is damaged")]
    Damaged {
        /// `blob` or `remote blob`.
        what: &'static str,
        /// The digest or key of the object, in hex.
        digest: String,
    },
    /// A stored manifest that this program does not write: for example, an entry's path leaves its directory.
    /// The action that produced it has to run again.
    #[error("artifact {digest} is not valid: {reason}")]
    Manifest {
        /// The digest of the object, in hex.
        digest: String,
        /// The reason.
        reason: String,
    },
    /// An artifact that cannot be stored or exported: for example, an entry's path leaves its directory.
    #[error("the artifact is not valid: {reason}")]
    Entries {
        /// The reason.
        reason: String,
    },
    /// The store was written by a version with another layout.
    #[error(
        "`{}` has store format {found}, this program reads format {expected}",
        path.display()
    )]
    Format {
        /// The store's root.
        path: PathBuf,
        /// The version found.
        found: String,
        /// The version read here.
        expected: &'static str,
    },
    /// Something else has the place of a store directory.
    #[error("`{}` is {found}, not a directory of the store", path.display())]
    Obstacle {
        /// The path of the directory.
        path: PathBuf,
        /// The kind of file found there, with its article.
        found: &'static str,
    },
    /// Another process holds a lock for longer than any work takes.
    #[error(
        "{} has held the lock `{}` for {seconds} s",
        holder.as_deref().unwrap_or("another process"),
        path.display()
    )]
    Locked {
        /// The path of the lock file.
        path: PathBuf,
        /// The time waited, in seconds.
        seconds: u64,
        /// The holder's host and process, on a store that several hosts share.
        holder: Option<String>,
    },
    /// A run uses the store, which excludes garbage collection.
    #[error(
        "the store `{}` is in use by a run{}; try again when it has ended",
        path.display(),
        host.as_deref().map(|host| format!(" on {host}")).unwrap_or_default()
    )]
    Busy {
        /// The store's root.
        path: PathBuf,
        /// The run's host and process, on a store that several hosts share.
        host: Option<String>,
    },
    /// A source file kept changing while it was hashed.
    #[error("`{}` changes while it is read; run again when its writer has ended", path.display())]
    Changing {
        /// The file.
        path: PathBuf,
    },
    /// The work was interrupted.
    #[error("interrupted while `{}` was read", path.display())]
    Interrupted {
        /// The file that was read.
        path: PathBuf,
    },
    /// An artifact cannot be exported.
    #[error("cannot export to `{}`: {reason}", path.display())]
    Export {
        /// The existing file or directory.
        path: PathBuf,
        /// The reason.
        reason: &'static str,
    },
    /// A file on a server cannot be fetched.
    #[error("{url}: {reason}")]
    File {
        /// The URL of the remote, without credentials.
        url: String,
        /// The reason.
        reason: String,
        /// A hint on how to fix the error.
        hint: String,
    },
    /// The configuration of a remote store is wrong, or does not allow the request.
    #[error("{remote} cannot be used: {reason}")]
    Remote {
        /// The remote, without credentials.
        remote: String,
        /// The reason.
        reason: String,
    },
}

impl Error {
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }

    pub(crate) fn missing(digest: BlobDigest) -> Self {
        let digest = digest.to_hex();
        Self::Missing { digest }
    }

    /// The error of a damaged object: `what` is `blob` or `remote blob`.
    pub fn damaged(what: &'static str, digest: BlobDigest) -> Self {
        let digest = digest.to_hex();
        Self::Damaged { what, digest }
    }

    /// The error of a remote that cannot be used.
    pub fn remote(remote: impl Into<String>, reason: impl Into<String>) -> Self {
        let (remote, reason) = (remote.into(), reason.into());
        Self::Remote { remote, reason }
    }

    /// True if this user lacks permission to write, or the file system is read-only: a run that needs nothing
    /// new continues.
    pub fn is_denied(&self) -> bool {
        let is_denied = |kind| matches!(kind, ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem);
        matches!(self, Self::Io { source, .. } if is_denied(source.kind()))
    }

    /// A hint on how to fix the error, for errors that determine one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::File { hint, .. } => Some(hint.clone()),
            Self::Missing { .. } | Self::Damaged { .. } => {
                Some("run the pipeline again: what is missing or damaged is computed again".to_owned())
            }
            Self::Manifest { .. } => Some(
                "this program writes no such artifact: something else wrote to the store, or to a remote \
                 with `trust: unsigned`; a run \
                 that reads it computes it again, as `--force` does"
                    .to_owned(),
            ),
            Self::Format { path, .. } => Some(format!(
                "use the program that wrote it, or another directory by RUNNER_HOME; if no other version \
                 has used it, its file \
                 `format` is damaged: remove `{}`",
                path.join("format").display()
            )),
            Self::Obstacle { path, .. } => Some(format!(
                "move `{}` away (or mount what it leads to), or name another directory by RUNNER_HOME",
                path.display()
            )),
            Self::Locked {
                holder: Some(holder), ..
            } => Some(format!("end {holder}, if it hangs")),
            Self::Locked { path, .. } => Some(format!(
                "find the process that hangs, as by `fuser {}`, and end it",
                path.display()
            )),
            Self::Io { source, path, .. } => match source.kind() {
                ErrorKind::NotADirectory | ErrorKind::IsADirectory => Some(format!(
                    "something else is in its place: move `{}` away, and what the store lost is computed \
                    again",
                    path.display()
                )),
                _ => None,
            },
            _ => None,
        }
    }

    /// True if recomputing the action that produced the bytes resolves the error.
    pub fn is_healed_by_recomputing(&self) -> bool {
        matches!(
            self,
            Self::Missing { .. } | Self::Damaged { .. } | Self::Manifest { .. }
        )
    }
}
