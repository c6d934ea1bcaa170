//! Stores that several users share.
//!
//! The directory of such a store has the set-group-ID bit and is writable for its group (`chmod g+ws`). What is created below it
//! belongs to that group by the bit, and is made writable for the group here, whatever the umask is. Elsewhere nothing changes.

use rustix::fs::{Access, access};
use std::fs::{Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

/// Set-group-ID, and writable for the group.
const SHARED: u32 = 0o2020;

/// Creates a directory.
///
/// # Errors
/// As [`std::fs::create_dir`].
pub fn create_dir(path: &Path) -> io::Result<()> {
    std::fs::create_dir(path)?;
    share(path, 0o2070)
}

/// Creates a directory and its missing parents.
///
/// # Errors
/// As [`std::fs::create_dir_all`].
pub fn create_dir_all(path: &Path) -> io::Result<()> {
    match create_dir(path) {
        Err(err) if err.kind() == ErrorKind::NotFound => {
            let parent = path.parent().ok_or(err)?;
            create_dir_all(parent)?;
            match create_dir(path) {
                Err(err) if err.kind() == ErrorKind::AlreadyExists => Ok(()),
                created => created,
            }
        }
        // Another error precedes this one on some file systems.
        Err(_) if path.is_dir() => Ok(()),
        created => created,
    }
}

/// Makes a new file readable and writable for the group.
///
/// # Errors
/// When its permissions cannot be changed.
pub fn share_file(path: &Path) -> io::Result<()> {
    share(path, 0o060)
}

/// True if this user may create files in the directory, or else in the nearest one above it that exists.
pub fn is_writable(dir: &Path) -> bool {
    let nearest = dir.ancestors().find(|dir| dir.exists());
    nearest.is_some_and(|dir| access(dir, Access::WRITE_OK | Access::EXEC_OK).is_ok())
}

fn share(path: &Path, bits: u32) -> io::Result<()> {
    let is_shared = |meta: &Metadata| meta.mode() & SHARED == SHARED;
    match path.parent() {
        Some(parent) if is_shared(&std::fs::metadata(parent)?) => {
            let mode = std::fs::metadata(path)?.mode();
            std::fs::set_permissions(path, Permissions::from_mode(mode & 0o7777 | bits))
        }
        _ => Ok(()),
    }
}
