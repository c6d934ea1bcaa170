//! How a file gets its name: written whole under another one, made read-only, renamed.

use crate::{Error, Result};
use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};
use tempfile::NamedTempFile;

/// A use is noted in a record's modification time at most this often.
const TOUCH_AFTER: Duration = Duration::from_secs(3600);

/// The file that is there while something may have been written since the last flush began.
pub(crate) const UNFLUSHED: &str = "unflushed";

/// The name that it has while a flush is on its way.
pub(crate) const FLUSHING: &str = "flushing";

/// A file in `tmp`, which makes the store have something to flush. It is locked for as long as its writer lives, which is
/// how `gc` tells a leftover ([`lock::abandoned`](crate::lock::abandoned)).
pub(crate) fn temporary(root: &Path) -> Result<NamedTempFile> {
    mark_unflushed(root)?;
    unmarked_temporary(root)
}

/// Notes that the store has something to flush.
pub(crate) fn mark_unflushed(root: &Path) -> Result<()> {
    let marker = root.join(UNFLUSHED);
    // Looking at it keeps nobody from the folder, as making it does.
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

/// [`temporary`] for what need not be flushed.
pub(crate) fn unmarked_temporary(root: &Path) -> Result<NamedTempFile> {
    held(&root.join("tmp"), tempfile::Builder::new().prefix("new-"))
}

/// A new file that is locked for as long as it is open.
pub(crate) fn held(dir: &Path, name: &tempfile::Builder<'_, '_>) -> Result<NamedTempFile> {
    loop {
        let file = name.tempfile_in(dir).map_err(Error::io("write a file in", dir))?;
        // Where the file system has no locks, a file's age alone protects it.
        file.as_file().lock().ok();
        // Between its creation and its lock, `gc` may have taken it for a leftover.
        if file.as_file().metadata().map_or(true, |meta| meta.nlink() > 0) {
            return Ok(file);
        }
    }
}

/// Gives a complete temporary file its name, in place of what has it. Marks the store once more: a flush that began since
/// the file was made has taken the first mark away, and may have been over before the file had its name.
pub(crate) fn publish(root: &Path, file: NamedTempFile, path: &Path) -> Result<()> {
    put_in_place(file, path)?;
    mark_unflushed(root)
}

/// [`publish`] that gives the file back when there is one of that name: it may be on the disk already, which its twin is
/// not. A file system that cannot do this replaces it.
pub(crate) fn publish_new(root: &Path, file: NamedTempFile, path: &Path) -> Result<Option<NamedTempFile>> {
    make_ready(&file, path)?;
    match file.persist_noclobber(path) {
        Ok(_) => mark_unflushed(root).map(|()| None),
        Err(err) if err.error.kind() == io::ErrorKind::AlreadyExists => Ok(Some(err.file)),
        Err(err) => publish(root, err.file, path).map(|()| None),
    }
}

/// [`publish`] for what need not be flushed.
pub(crate) fn put_in_place(file: NamedTempFile, path: &Path) -> Result<()> {
    make_ready(&file, path)?;
    file.persist(path).map_err(|err| Error::io("write", path)(err.error))?;
    Ok(())
}

fn make_ready(file: &NamedTempFile, path: &Path) -> Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
    }
    file.as_file()
        .set_permissions(Permissions::from_mode(0o444))
        .map_err(Error::io("write", file.path()))
}

/// Gives a complete file that is open as `file` the name `goal`, in place of what has it.
pub(crate) fn publish_held(root: &Path, file: &File, path: &Path, goal: &Path) -> Result<()> {
    if let Some(parent) = goal.parent() {
        std::fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
    }
    file.set_permissions(Permissions::from_mode(0o444))
        .map_err(Error::io("write", path))?;
    std::fs::rename(path, goal).map_err(Error::io("write", goal))?;
    mark_unflushed(root)
}

/// What the system knows of a file; `None` when it is not there.
pub(crate) fn metadata(path: &Path) -> Result<Option<Metadata>> {
    found(std::fs::metadata(path), "read", path)
}

/// Turns `not found` into `None`.
pub(crate) fn found<T>(result: io::Result<T>, what: &'static str, path: &Path) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(err) => Err(Error::io(what, path)(err)),
    }
}

/// Removes a file that may be gone already.
pub(crate) fn remove(path: &Path) -> Result<()> {
    found(std::fs::remove_file(path), "remove", path).map(|_| ())
}

/// Notes that a file was used, if the last note is older than `after`. It is only a hint to `gc`, so that a store
/// which belongs to somebody else can be read all the same.
pub(crate) fn touch(path: &Path, meta: &Metadata, after: Duration) {
    let now = SystemTime::now();
    let fresh = meta
        .modified()
        .is_ok_and(|then| now.duration_since(then).unwrap_or_default() < after);
    if !fresh {
        File::open(path).and_then(|file| file.set_modified(now)).ok();
    }
}

/// [`touch`] for records, which are used much more often than it is worth noting.
pub(crate) fn touch_record(path: &Path, meta: &Metadata) {
    touch(path, meta, TOUCH_AFTER);
}
