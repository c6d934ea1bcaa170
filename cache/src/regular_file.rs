//! Opening files that must be regular. A FIFO, a device or a link in the place of a file would block its
//! reader forever, or lead it outside the store: files are opened without blocking, and their type is checked
//! once they are open.

use crate::error::{Error, Result};
use crate::fs::{is_absent, metadata, without_waiting};
use rustix::fs::OFlags;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// The result of opening a file of the store.
pub(crate) enum Opened {
    /// The path does not exist.
    Absent,
    /// A regular file, and its metadata.
    Regular(File, Metadata),
    /// A directory, a link, a FIFO, a socket or a device.
    Foreign(Metadata),
}

/// Opens a file outside the store for reading. Links are followed.
///
/// # Errors
/// When the file cannot be opened, or is not a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    match without_waiting(File::options().read(true), OFlags::empty()).open(path) {
        Ok(file) => {
            let meta = file.metadata()?;
            match meta.is_file() {
                true => Ok(file),
                false => Err(not_regular(&meta)),
            }
        }
        // A socket cannot be opened.
        Err(err) => Err(match std::fs::metadata(path) {
            Ok(meta) if meta.file_type().is_socket() => not_regular(&meta),
            _ => err,
        }),
    }
}

/// Reads a file outside the store.
///
/// # Errors
/// The errors of [`open`], or when the file cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a path given by the user for reading: a file, or a stream that the process was given as `/dev/stdin`
/// or `/dev/fd/N`, as by `<(…)` in a shell. Reading a stream blocks until its end.
///
/// # Errors
/// When the path cannot be opened, or is neither: a named FIFO would block its reader until another process
/// writes to it.
pub fn open_or_stream(path: &Path) -> io::Result<File> {
    match is_stream(path) {
        true => File::open(path),
        false => open(path),
    }
}

/// Writes a file outside the store, or writes to a stream as [`open_or_stream`] accepts it.
pub fn write_or_stream(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(meta) if !meta.is_file() && !is_stream(path) => Err(not_regular(&meta)),
        _ => std::fs::write(path, bytes),
    }
}

/// True if the path names a stream of this process.
fn is_stream(path: &Path) -> bool {
    let names = ["/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/null"];
    names.iter().any(|name| path == Path::new(name))
        || path.starts_with("/dev/fd")
        || path.starts_with("/proc/self/fd")
}

/// Opens a file of the store for reading. Links are not followed: the store has none.
pub(crate) fn open_own(path: &Path) -> Result<Opened> {
    match without_waiting(File::options().read(true), OFlags::NOFOLLOW).open(path) {
        Ok(file) => {
            let meta = file.metadata().map_err(Error::io("read", path))?;
            Ok(match meta.is_file() {
                true => Opened::Regular(file, meta),
                false => Opened::Foreign(meta),
            })
        }
        Err(err) if is_absent(&err) => Ok(Opened::Absent),
        // A link or a socket cannot be opened.
        Err(err) => match metadata(path)? {
            None => Ok(Opened::Absent),
            Some(meta) if !meta.is_file() => Ok(Opened::Foreign(meta)),
            Some(_) => Err(Error::io("read", path)(err)),
        },
    }
}

/// Reads a small file of the store; `None` when it does not exist, or is not a regular file.
pub(crate) fn read_own(path: &Path) -> Result<Option<Vec<u8>>> {
    let Opened::Regular(file, meta) = open_own(path)? else {
        return Ok(None);
    };
    read_opened(path, file, &meta).map(Some)
}

/// Reads a file of the store whose length is known, with one system call.
pub(crate) fn read_opened(path: &Path, file: File, meta: &Metadata) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(0));
    let read = file.take(meta.len()).read_to_end(&mut bytes);
    read.map_err(Error::io("read", path))?;
    Ok(bytes)
}

fn not_regular(meta: &Metadata) -> io::Error {
    io::Error::other(format!("{}, not a regular file", kind(meta)))
}

/// The kind of a file that is not regular, with its article.
pub(crate) fn kind(meta: &Metadata) -> &'static str {
    let ty = meta.file_type();
    if ty.is_dir() {
        "a directory"
    } else if ty.is_symlink() {
        "a symbolic link"
    } else if ty.is_fifo() {
        "a FIFO"
    } else if ty.is_socket() {
        "a socket"
    } else if ty.is_file() {
        "a file"
    } else {
        "a device"
    }
}
