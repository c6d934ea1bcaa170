//! The small JSON files of the history, each with a checksum, and the directories that hold them.

use cache::{checksummed, regular_file, shared};
use runner_engine::Failure;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{DirEntry, File, TryLockError};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

/// Reads a document; `None` if there is no file at `path`.
pub(crate) fn read<T: DeserializeOwned>(path: &Path, hint: &str) -> Result<Option<T>, Failure> {
    let bytes = match regular_file::read(path) {
        Err(err) if err.kind() == ErrorKind::NotFound => return Ok(None),
        bytes => bytes,
    };
    let parse = |bytes: Vec<u8>| match checksummed::matches_checksum(&bytes) {
        true => Ok(serde_json::from_slice(&bytes)?),
        false => Err(io::Error::other("its checksum is wrong")),
    };
    let document = bytes.and_then(parse).map(Some);
    document.map_err(|err| Failure::at("cannot read", path)(err).hint(hint))
}

/// The failure to write a file of the history.
pub fn unwritable(path: &Path) -> impl Fn(io::Error) -> Failure + Copy {
    move |err| {
        Failure::at("cannot write", path)(err)
            .hint("set `RUNNER_HOME` to a writable directory with free disk space")
    }
}

/// A lock in a directory, released when dropped: its holder alone changes what the lock is named after.
#[derive(Debug)]
pub struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        // Closing the file also releases the lock, but only once no recently forked child holds a copy of it.
        let _ = self.0.unlock();
    }
}

/// Refuses a name that is new in a directory of named files and differs from another one there in case alone:
/// most disks of macOS would take the two for one.
pub(crate) fn check_case(dir: &Path, name: &str) -> Result<(), Failure> {
    let entries = entries(dir)?;
    let stems = || entries.iter().filter_map(|(entry, _)| Some(entry.rsplit_once('.')?.0));
    let other = stems().find(|stem| stem.eq_ignore_ascii_case(name));
    match other {
        Some(other) if stems().all(|stem| stem != name) => Err(Failure::usage(format!(
            "`{name}` differs from `{other}` in `{}` in case alone",
            dir.display()
        ))
        .hint("write it as there, or choose another name")),
        _ => Ok(()),
    }
}

/// Takes the lock `NAME.lock` in a directory, which need not exist; `None` if another process holds it.
///
/// # Errors
/// If the lock file cannot be made, or for the reason of [`check_case`].
pub(crate) fn lock(dir: &Path, name: &str) -> Result<Option<Locked>, Failure> {
    check_case(dir, name)?;
    let path = dir.join(format!("{name}.lock"));
    let failed = unwritable(&path);
    shared::create_dir_all(dir).map_err(failed)?;
    let file = File::options().create(true).append(true).open(&path).map_err(failed)?;
    // Only the file's owner can share it.
    let _ = shared::share_file(&path);
    match file.try_lock() {
        Ok(()) => Ok(Some(Locked(file))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(err)) => Err(failed(err)),
    }
}

/// Formats a document as text, with its checksum.
///
/// # Errors
/// If it cannot be serialised.
pub fn text(value: &impl Serialize) -> io::Result<String> {
    let mut text = serde_json::to_string(value)?;
    checksummed::add_checksum(&mut text);
    Ok(text)
}

/// Replaces a document that can be made again: neither flushed to disk nor whole for concurrent readers, who
/// find its checksum wrong.
pub(crate) fn write_new(path: &Path, value: &impl Serialize) -> io::Result<()> {
    // What stands there may not be a regular file.
    let _ = std::fs::remove_file(path);
    let mut file = File::create_new(path)?;
    shared::share_file(path)?;
    file.write_all((text(value)? + "\n").as_bytes())
}

/// Replaces a document, and flushes it to disk.
pub(crate) fn write(path: &Path, value: &impl Serialize) -> io::Result<()> {
    write_text(path, &(text(value)? + "\n"))
}

/// Replaces a file by a text, and flushes it to disk.
pub(crate) fn write_text(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension("new");
    // The temporary file may be left over, and may not be a regular file.
    let _ = std::fs::remove_file(&new);
    let written = File::create_new(&new).and_then(|mut file| {
        shared::share_file(&new)?;
        file.write_all(text.as_bytes())?;
        cache::flush(&file)?;
        std::fs::rename(&new, path)
    });
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    written
}

/// The entries of a directory with their names, sorted; empty if the directory does not exist.
///
/// # Errors
/// If the directory cannot be read.
pub fn entries(dir: &Path) -> Result<Vec<(String, DirEntry)>, Failure> {
    let entries = match std::fs::read_dir(dir) {
        Err(err) if err.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.and_then(Iterator::collect::<io::Result<Vec<DirEntry>>>),
    };
    let entries = entries.map_err(Failure::at("cannot read", dir))?;
    let named = |entry: DirEntry| (entry.file_name().to_string_lossy().into_owned(), entry);
    let mut named: Vec<_> = entries.into_iter().map(named).collect();
    named.sort_by(|(left, _), (right, _)| left.cmp(right));
    Ok(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_name_differs_in_more_than_case() {
        let dir = tempfile::tempdir().unwrap();
        let lock = |name| lock(dir.path(), name).map(|lock| lock.is_some());
        assert!(lock("nightly").unwrap());
        assert!(lock("nightly").unwrap() && lock("nightly-2").unwrap());
        let refused = lock("Nightly").unwrap_err();
        assert!(
            refused.message.contains("`Nightly` differs from `nightly`"),
            "{refused:?}"
        );
        // Both are there already: this disk tells them apart.
        std::fs::write(dir.path().join("Nightly.jsonl"), "").unwrap();
        assert!(lock("Nightly").unwrap() && lock("nightly").unwrap());
        assert!(lock("NIGHTLY").is_err());
    }
}
