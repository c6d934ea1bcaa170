//! Atomic writes: a file is written under a temporary name, made read-only and renamed.

use crate::error::{Error, Result};
use crate::flush::flush;
use crate::fs::metadata;
use crate::obstacle::{create_directory, make_way_for_file};
use crate::owner::{Members, Owner};
use crate::shared;
use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use tempfile::NamedTempFile;

/// The marker that exists while something may have been written since the last flush began.
pub(crate) const UNFLUSHED: &str = "unflushed";

/// The marker's name during a flush.
pub(crate) const FLUSHING: &str = "flushing";

/// A file that is removed when the value is dropped, unless it is renamed before.
#[derive(Debug)]
pub(crate) struct TempFile {
    file: NamedTempFile,
    /// On a store that several hosts share, what excludes `gc` while the file exists.
    _owner: Option<Arc<Owner>>,
}

/// The bytes of a `write`. The page cache takes a longer one in longer folios, and a kernel whose memory is
/// fragmented moves other pages for them: 111 MB in files of 3.6 MB took 41 ms of CPU on ext4 in these
/// pieces, and 106 ms in one piece a file (Linux 6.18).
const PIECE: usize = 32 << 10;

impl TempFile {
    /// Writes all of `bytes` behind what is written.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        bytes.chunks(PIECE).try_for_each(|piece| self.file.write_all(piece))
    }
}

impl Deref for TempFile {
    type Target = NamedTempFile;

    fn deref(&self) -> &NamedTempFile {
        &self.file
    }
}

impl DerefMut for TempFile {
    fn deref_mut(&mut self) -> &mut NamedTempFile {
        &mut self.file
    }
}

/// Creates a file in `tmp`, and marks the store as unflushed. The file is locked until its writer closes it:
/// by the lock, `gc` tells it from a leftover ([`file_lock::abandoned`](crate::file_lock::abandoned)).
pub(crate) fn temp_file(root: &Path) -> Result<TempFile> {
    mark_unflushed(root)?;
    unmarked_temp_file(root)
}

/// Marks the store as unflushed. On a store that several hosts share, files are flushed before they are
/// renamed.
pub(crate) fn mark_unflushed(root: &Path) -> Result<()> {
    if Members::of(root).is_some() {
        return Ok(());
    }
    let marker = root.join(UNFLUSHED);
    // Looking the marker up takes no lock on the directory, unlike creating it.
    if metadata(&marker)?.is_some() {
        return Ok(());
    }
    let marked = File::options().write(true).create_new(true).open(&marker);
    if let Err(err) = marked
        && err.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(Error::io("write", &marker)(err));
    }
    Ok(())
}

/// Creates a file as [`temp_file`] does, for contents that need no flush.
fn unmarked_temp_file(root: &Path) -> Result<TempFile> {
    locked_temp_file(
        &root.join("tmp"),
        tempfile::Builder::new().prefix("new-"),
        Members::of(root).as_deref(),
    )
}

/// Creates a file that stays locked for as long as it is open; `members` where several hosts share the store
/// that it belongs to.
pub(crate) fn locked_temp_file(
    dir: &Path,
    name: &tempfile::Builder<'_, '_>,
    members: Option<&Members>,
) -> Result<TempFile> {
    let owner = members.map(Members::owner).transpose()?;
    let mut name = name.clone();
    if shared::is_shared_directory(dir) {
        // A kill before the permissions are changed leaves a file that the `gc` of another user can open and
        // lock.
        name.permissions(Permissions::from_mode(0o660));
    }
    loop {
        let file = name.tempfile_in(dir).map_err(Error::io("write a file in", dir))?;
        // The `gc` of another user must be able to lock the file, too.
        shared::share_file(file.path()).map_err(Error::io("write", file.path()))?;
        if owner.is_none() {
            // On a file system without locks, a file's age alone protects it.
            file.as_file().lock().ok();
        }
        // Between the file's creation and its lock, `gc` may have removed it as a leftover.
        if file.as_file().metadata().map_or(true, |meta| meta.nlink() > 0) {
            return Ok(TempFile { file, _owner: owner });
        }
    }
}

/// Renames a complete temporary file to `path`, replacing an existing file. Marks the store as unflushed once
/// more: a flush that began since the file was created has removed the first mark, and may have ended before
/// the rename.
pub(crate) fn persist(root: &Path, file: TempFile, path: &Path) -> Result<()> {
    persist_unmarked(root, file, path)?;
    mark_unflushed(root)
}

/// Renames a file as [`persist`] does, but returns the file when `path` exists: the existing file may be on
/// the disk already, unlike the new one. A file system without this operation replaces the existing file.
pub(crate) fn persist_new(root: &Path, file: TempFile, path: &Path) -> Result<Option<TempFile>> {
    prepare(root, file.as_file(), file.path(), path)?;
    let TempFile { file, _owner } = file;
    match file.persist_noclobber(path) {
        Ok(_) => mark_unflushed(root).map(|()| None),
        Err(err) => {
            let file = TempFile {
                file: err.file,
                _owner,
            };
            match err.error.kind() {
                io::ErrorKind::AlreadyExists => Ok(Some(file)),
                _ => persist(root, file, path).map(|()| None),
            }
        }
    }
}

/// Renames a file as [`persist`] does, for contents that need no flush.
fn persist_unmarked(root: &Path, file: TempFile, path: &Path) -> Result<()> {
    prepare(root, file.as_file(), file.path(), path)?;
    let TempFile { file, _owner } = file;
    if let Err(err) = file.persist(path) {
        // Renaming a file replaces anything but a directory.
        make_way_for_file(root, path)?;
        err.file
            .persist(path)
            .map_err(|err| Error::io("write", path)(err.error))?;
    }
    Ok(())
}

/// Renames a file as [`persist`] does, where the file is open as `file` and has the name `from`.
pub(crate) fn persist_open(root: &Path, file: &File, from: &Path, path: &Path) -> Result<()> {
    prepare(root, file, from, path)?;
    make_way_for_file(root, path)?;
    std::fs::rename(from, path).map_err(Error::io("write", path))?;
    mark_unflushed(root)
}

/// Creates the directory of `path` and makes the file read-only. On a store that several hosts share, sends
/// its bytes to the server: otherwise another host could find the name before the bytes.
fn prepare(root: &Path, file: &File, from: &Path, path: &Path) -> Result<()> {
    if let Some(parent) = path.parent() {
        create_directory(root, parent)?;
    }
    file.set_permissions(Permissions::from_mode(0o444))
        .map_err(Error::io("write", from))?;
    if Members::of(root).is_some() {
        flush(file).map_err(Error::io("flush", from))?;
    }
    Ok(())
}

/// Writes a small file of the store's own bookkeeping atomically, without a flush: its readers tolerate its
/// loss.
pub(crate) fn replace(root: &Path, path: &Path, text: &str) -> Result<()> {
    let mut file = unmarked_temp_file(root)?;
    file.write_all(text.as_bytes())
        .map_err(Error::io("write", file.path()))?;
    persist_unmarked(root, file, path)
}
