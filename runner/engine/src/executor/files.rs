//! Files of external programs, and the errors of accessing them.

use stages_core::StageError;
use stages_core::error::Cause;
use std::fs;
use std::io;
use std::path::Path;

/// The error of an operation on a file.
pub(super) fn failed(what: &str, path: &Path) -> impl FnOnce(io::Error) -> StageError {
    let message = format!("cannot {what} `{}`", path.display());
    move |err| StageError {
        cause: Cause::Store,
        ..StageError::new(format!("{message}: {err}"))
    }
}

/// Creates the parent directory of a file.
pub(super) fn create_parent(path: &Path) -> Result<(), StageError> {
    match path.parent() {
        Some(parent) => fs::create_dir_all(parent).map_err(failed("create", parent)),
        None => Ok(()),
    }
}
