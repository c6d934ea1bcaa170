//! The files and directories below the store's root.

use crate::error::{Error, Result};
use crate::fs::if_exists;
use crate::store::Store;
use std::fs::{DirEntry, Metadata, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::SystemTime;

/// A file or directory whose name is a digest or key.
#[derive(Debug)]
pub(crate) struct Named<T> {
    pub id: T,
    pub path: PathBuf,
    pub meta: Metadata,
}

/// The entries of a directory, sorted by name; empty when the directory does not exist.
pub(crate) fn entries(dir: &Path) -> Result<Vec<DirEntry>> {
    let Some(reader) = if_exists(std::fs::read_dir(dir), "list", dir)? else {
        return Ok(Vec::new());
    };
    let mut entries = reader.collect::<Result<Vec<_>, _>>().map_err(Error::io("list", dir))?;
    entries.sort_by_key(DirEntry::file_name);
    Ok(entries)
}

/// The entries of a directory with their metadata; entries removed in the meantime are skipped.
pub(crate) fn entries_with_metadata(dir: &Path) -> Result<Vec<(PathBuf, Metadata)>> {
    let mut out = Vec::new();
    for entry in entries(dir)? {
        let path = entry.path();
        if let Some(meta) = if_exists(entry.metadata(), "read", &path)? {
            out.push((path, meta));
        }
    }
    Ok(out)
}

/// The total size in bytes and the newest modification time of a directory tree.
pub(crate) fn size_and_age(path: &Path, meta: &Metadata) -> Result<(u64, SystemTime)> {
    let mut newest = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    if !meta.is_dir() {
        return Ok((meta.len(), newest));
    }
    let mut bytes = 0;
    for (path, meta) in entries_with_metadata(path)? {
        let (more, age) = size_and_age(&path, &meta)?;
        bytes += more;
        newest = newest.max(age);
    }
    Ok((bytes, newest))
}

/// Removes a directory tree, even where a program removed its owner's write permission.
///
/// # Errors
/// If it cannot be removed.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(err) if err.kind() == io::ErrorKind::PermissionDenied => {
            make_writable(path)?;
            std::fs::remove_dir_all(path)
        }
        removed => removed,
    }
}

fn make_writable(dir: &Path) -> io::Result<()> {
    std::fs::set_permissions(dir, Permissions::from_mode(0o700))?;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            make_writable(&entry.path())?;
        }
    }
    Ok(())
}

impl Store {
    /// The entries of a sharded directory, sorted by name. Files whose names are not a digest or key are
    /// ignored.
    pub(crate) fn list<T: FromStr>(&self, folder: &str) -> Result<Vec<Named<T>>> {
        let mut out = Vec::new();
        for shard in entries(&self.folder(folder))? {
            let prefix = shard.file_name();
            let Some(prefix) = prefix.to_str().filter(|name| name.len() == 2) else {
                continue;
            };
            if !shard.path().is_dir() {
                continue;
            }
            for (path, meta) in entries_with_metadata(&shard.path())? {
                let rest = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let hex = format!("{prefix}{rest}");
                if hex.bytes().any(|byte| byte.is_ascii_uppercase()) {
                    continue;
                }
                if let Ok(id) = hex.parse() {
                    out.push(Named { id, path, meta });
                }
            }
        }
        Ok(out)
    }
}
