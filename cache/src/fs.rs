//! File operations that tolerate missing files.

use crate::error::{Error, Result};
use rustix::fs::OFlags;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A use is noted in a record's modification time at most this often.
const TOUCH_AFTER: Duration = Duration::from_secs(3600);

/// The metadata of a file or of a link itself; `None` when it does not exist.
pub(crate) fn metadata(path: &Path) -> Result<Option<Metadata>> {
    match std::fs::symlink_metadata(path) {
        // A directory above it is a link to itself.
        Err(err) if err.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => Ok(None),
        found => if_exists(found, "read", path),
    }
}

/// Maps an error that [`Error::is_denied`] to `None`: the write was a convenience of later runs.
pub(crate) fn if_allowed<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(err) if err.is_denied() => Ok(None),
        result => result.map(Some),
    }
}

/// True if an error means that nothing has the name.
pub(crate) fn is_absent(err: &io::Error) -> bool {
    matches!(err.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Maps an error that means that nothing has the name to `None`.
pub(crate) fn if_exists<T>(result: io::Result<T>, what: &'static str, path: &Path) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(err) if is_absent(&err) => Ok(None),
        Err(err) => Err(Error::io(what, path)(err)),
    }
}

/// Updates the modification time of a file if it is older than `after`. It is a hint to `gc` only, so that
/// errors are ignored: a read-only store can be used all the same.
pub(crate) fn touch(path: &Path, meta: &Metadata, after: Duration) {
    let now = SystemTime::now();
    let fresh = meta
        .modified()
        .is_ok_and(|then| now.duration_since(then).unwrap_or_default() < after);
    if !fresh {
        let file = without_waiting(File::options().read(true), OFlags::NOFOLLOW).open(path);
        file.and_then(|file| file.set_modified(now)).ok();
    }
}

/// [`touch`] for records, at most once an hour.
pub(crate) fn touch_record(path: &Path, meta: &Metadata) {
    touch(path, meta, TOUCH_AFTER);
}

/// Adds the flags with which opening a FIFO or a device does not wait. They do not affect regular files.
pub(crate) fn without_waiting(options: &mut OpenOptions, more: OFlags) -> &mut OpenOptions {
    options.custom_flags((OFlags::NONBLOCK | more).bits() as i32)
}
