//! Files of external programs, and what is said where one cannot be used.

use stages_core::StageError;
use stages_core::error::Cause;
use std::fs;
use std::io;
use std::path::Path;

/// The error of a file that something cannot be done with.
pub(super) fn failed(what: &str, path: &Path) -> impl FnOnce(io::Error) -> StageError {
    let message = format!("cannot {what} `{}`", path.display());
    move |err| StageError {
        cause: Cause::Store,
        ..StageError::new(format!("{message}: {err}"))
    }
}

/// Creates the folder that a file is to be in.
pub(super) fn create_parent(path: &Path) -> Result<(), StageError> {
    match path.parent() {
        Some(parent) => fs::create_dir_all(parent).map_err(failed("create", parent)),
        None => Ok(()),
    }
}
