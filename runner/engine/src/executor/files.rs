//! Files of external programs, and the errors of accessing them. Work on a large file checks between pieces
//! whether it has to stop.

use cache::shared;
use stages_core::StageError;
use stages_core::error::Cause;
use std::fs::File;
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
    let mut target = File::create_new(to).map_err(failed("write", to))?;
    if !reflink(&source, &target) {
        read_pieces(&mut source, from, stop, |bytes| {
            target.write_all(bytes).map_err(failed("write", to))
        })?;
    }
    let mode = source.metadata().map_err(failed("read", from))?.permissions();
    target.set_permissions(mode).map_err(failed("write", to))
}

/// Makes the empty file `target` a reflink of `source`; returns true if the file system did so.
pub(super) fn reflink(source: &File, target: &File) -> bool {
    #[cfg(target_os = "linux")]
    {
        rustix::fs::ioctl_ficlone(target, source).is_ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (source, target);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::fs;
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
