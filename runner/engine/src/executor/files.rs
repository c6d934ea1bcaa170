//! Files of external programs, and the errors of accessing them. Work on a large file checks between pieces
//! whether it has to stop.

use cache::shared;
use stages_core::StageError;
use stages_core::error::Cause;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

/// A check that returns an error once the stage has to stop; it is called between pieces of long work.
pub(super) type Stop<'a> = &'a dyn Fn() -> Result<(), StageError>;

/// The size of a piece, in bytes.
const PIECE: usize = 1 << 20;

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
        Some(parent) => shared::create_dir_all(parent).map_err(failed("create", parent)),
        None => Ok(()),
    }
}

/// Fails if a path exists in a directory that was empty. On a file system that ignores case, as most of a Mac
/// do, two names may denote one file.
pub(super) fn refuse_existing(path: &Path) -> Result<(), StageError> {
    match fs::symlink_metadata(path) {
        Err(_) => Ok(()),
        Ok(_) => Err(StageError::new(format!("`{}` is there already", path.display())).hint(
            "the file system ignores case, and two names of the stage differ in nothing else: rename one",
        )),
    }
}

/// Reads a file in pieces, and passes each piece to `put`.
pub(super) fn read_pieces(
    file: &mut File,
    path: &Path,
    stop: Stop<'_>,
    mut put: impl FnMut(&[u8]) -> Result<(), StageError>,
) -> Result<(), StageError> {
    let length = file.metadata().map_or(0, |meta| meta.len());
    // The piece holds one byte more than a small file, so that the end of the file is found in the first
    // read.
    let mut piece =
        vec![0; usize::try_from(length).map_or(PIECE, |length| length.saturating_add(1).min(PIECE))];
    loop {
        stop()?;
        match file.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(count) => put(&piece[..count])?,
            Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
            Err(err) => return Err(failed("read", path)(err)),
        }
    }
}

/// Copies a file with its permissions to a new file: as a reflink if the file system supports them.
pub(super) fn copy_file(from: &Path, to: &Path, stop: Stop<'_>) -> Result<(), StageError> {
    let mut source = File::open(from).map_err(failed("read", from))?;
    if let Some(mut target) = clone_or_create(&source, to).map_err(failed("write", to))? {
        read_pieces(&mut source, from, stop, |bytes| {
            target.write_all(bytes).map_err(failed("write", to))
        })?;
    }
    let mode = source.metadata().map_err(failed("read", from))?.permissions();
    fs::set_permissions(to, mode).map_err(failed("write", to))
}

/// Creates the file `to` as a reflink of `source`. Where the file system has none, returns the new file,
/// which is empty.
pub(super) fn clone_or_create(source: &File, to: &Path) -> io::Result<Option<File>> {
    #[cfg(target_os = "linux")]
    {
        let target = File::create_new(to)?;
        let is_cloned = rustix::fs::ioctl_ficlone(&target, source).is_ok();
        Ok((!is_cloned).then_some(target))
    }
    // APFS only clones to a new name; an existing one is an error of both calls.
    #[cfg(not(target_os = "linux"))]
    {
        match rustix::fs::fclonefileat(source, rustix::fs::CWD, to, rustix::fs::CloneFlags::empty()) {
            Ok(()) => Ok(None),
            Err(_) => File::create_new(to).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_copy_has_content_and_permissions() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("a"), dir.path().join("b"));
        let content: Vec<u8> = (0..5_000_000_u32).map(|i| (i % 251) as u8).collect();
        fs::write(&from, &content).unwrap();
        fs::set_permissions(&from, fs::Permissions::from_mode(0o751)).unwrap();
        copy_file(&from, &to, &|| Ok(())).unwrap();
        assert!(fs::read(&to).unwrap() == content);
        assert_eq!(fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o751);
        assert!(copy_file(&from, &to, &|| Ok(())).is_err(), "nothing is overwritten");
    }

    /// Copied in full, the file would take hours and more space than a disk has.
    #[test]
    fn a_copy_that_has_begun_hears_a_stop() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("a"), dir.path().join("b"));
        File::create(&from).unwrap().set_len(8 << 40).unwrap();
        let asked = Cell::new(0);
        let stop = || {
            asked.set(asked.get() + 1);
            match asked.get() {
                4 => Err(StageError::interrupted()),
                _ => Ok(()),
            }
        };
        // A file system with reflinks needs no copy.
        if let Err(error) = copy_file(&from, &to, &stop) {
            assert_eq!(error.cause, Cause::Interrupted, "{error}");
            assert_eq!(fs::metadata(&to).unwrap().len(), 3 << 20);
        }
    }
}
