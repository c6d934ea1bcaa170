//! Flushing a file to the disk.

use rustix::io::Errno;
use std::fs::File;
use std::io;

/// Flushes a file's bytes to the disk. [`File::sync_data`] and [`File::sync_all`] also flush the drive's
/// cache on macOS (`F_FULLFSYNC`), which network shares and foreign file systems refuse: those get an
/// `fsync(2)`.
///
/// # Errors
/// If the file cannot be flushed.
#[expect(clippy::disallowed_methods, reason = "this is the function to call instead")]
pub fn flush(file: &File) -> io::Result<()> {
    match file.sync_data() {
        Err(err) if is_refused(&err) => Ok(rustix::fs::fsync(file)?),
        flushed => flushed,
    }
}

/// True if a file system cannot flush in this way, rather than failed to.
fn is_refused(err: &io::Error) -> bool {
    [Errno::NOTSUP, Errno::INVAL, Errno::NOTTY].contains(&Errno::from_io_error(err).unwrap_or(Errno::IO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_file_system_cannot_do_is_refused() {
        flush(&tempfile::tempfile().unwrap()).unwrap();
        for refused in [Errno::NOTSUP, Errno::INVAL, Errno::NOTTY] {
            assert!(is_refused(&io::Error::from(refused)));
        }
        for failed in [Errno::NOSPC, Errno::IO, Errno::BADF, Errno::DQUOT] {
            assert!(!is_refused(&io::Error::from(failed)));
        }
        assert!(!is_refused(&io::Error::other("no errno")));
    }
}
