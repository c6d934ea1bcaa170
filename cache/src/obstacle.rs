//! Obstacles: foreign objects in the place of a file or a directory of the store. An obstacle is moved to
//! `damaged/`, whatever it is, and never deleted, since the store did not write it.

use crate::error::{Error, Result};
use crate::fs::metadata;
use crate::shared;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The number of names that are tried in `damaged/`.
const NAMES: usize = 100;

/// Moves the object at `path` to `damaged/`, replacing at most a file, and returns its new path; `None` when
/// nothing is there.
pub(crate) fn move_away(root: &Path, path: &Path) -> Result<Option<PathBuf>> {
    let name = path.strip_prefix(root).unwrap_or(path);
    let name = name.to_string_lossy().replace('/', "-");
    let damaged = root.join("damaged");
    let mut target = damaged.join(&name);
    for n in 1..=NAMES {
        match std::fs::rename(path, &target) {
            Ok(()) => return Ok(Some(target)),
            Err(err) if err.kind() == ErrorKind::NotFound => return Ok(None),
            // A file cannot replace a directory, and a directory can replace only an empty directory.
            Err(err)
                if n < NAMES
                    && matches!(
                        err.kind(),
                        ErrorKind::IsADirectory
                            | ErrorKind::NotADirectory
                            | ErrorKind::DirectoryNotEmpty
                            | ErrorKind::AlreadyExists
                    ) =>
            {
                target = damaged.join(format!("{name}.{n}"));
            }
            Err(err) => return Err(Error::io("move away", path)(err)),
        }
    }
    Ok(None)
}

/// Moves the object at `path` away unless it is a regular file.
pub(crate) fn make_way_for_file(root: &Path, path: &Path) -> Result<()> {
    match metadata(path)? {
        Some(meta) if !meta.is_file() => move_away(root, path).map(drop),
        _ => Ok(()),
    }
}

/// Creates a directory and its missing parents. Moves away an obstacle in their place.
pub(crate) fn create_directory(root: &Path, path: &Path) -> Result<()> {
    match shared::create_dir_all(path) {
        Err(err) if matches!(err.kind(), ErrorKind::AlreadyExists | ErrorKind::NotADirectory) => {
            // A link to a directory counts as a directory.
            if metadata(path)?.is_some() && !path.is_dir() {
                move_away(root, path)?;
            }
            shared::create_dir_all(path).map_err(Error::io("create", path))
        }
        created => created.map_err(Error::io("create", path)),
    }
}
