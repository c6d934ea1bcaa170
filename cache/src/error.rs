//! Errors of a store.

use std::path::{Path, PathBuf};

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure of the store or of the machine under it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file operation failed.
    #[error("cannot {what} `{}`", path.display())]
    Io {
        /// What was tried, as a verb (`write`, `read`).
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A blob that should be there is not.
    #[error("blob {digest} is missing")]
    Missing {
        /// Its digest, in hex.
        digest: String,
    },
    /// Bytes that are not what their name or checksum says. The damaged file has been moved out of the way, so that
    /// what made it will be run again.
    #[error("{what} {digest} is damaged")]
    Damaged {
        /// `blob`, `action record` or `memo`.
        what: &'static str,
        /// Its digest or key, in hex.
        digest: String,
    },
    /// A manifest that cannot be used: an entry that leaves its directory, say.
    #[error("artifact {digest} is not valid: {reason}")]
    Manifest {
        /// Its digest, in hex.
        digest: String,
        /// What is wrong.
        reason: String,
    },
    /// The store was written by a version with another layout.
    #[error(
        "`{}` has store format {found}, this program reads format {expected}; use the program that wrote it or \
         another folder",
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
    /// A run uses the store, so that nothing may be dropped from it.
    #[error("the store `{}` is in use by a run; try again when it has ended", path.display())]
    Busy {
        /// The store's root.
        path: PathBuf,
    },
    /// A source file kept changing while it was hashed.
    #[error("`{}` changes while it is read; run again when whatever writes it is done", path.display())]
    Changing {
        /// The file.
        path: PathBuf,
    },
    /// An artifact cannot be written where it was asked to be.
    #[error("cannot export to `{}`: {reason}", path.display())]
    Export {
        /// The file or folder in the way.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A remote store cannot be used.
    #[error("{remote} cannot be used: {reason}")]
    Remote {
        /// The remote, without credentials.
        remote: String,
        /// What is wrong.
        reason: String,
    },
}

impl Error {
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }

    /// Whether recomputing what made the bytes can heal this.
    pub fn is_healed_by_recomputing(&self) -> bool {
        matches!(self, Self::Missing { .. } | Self::Damaged { .. })
    }
}
