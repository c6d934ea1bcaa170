//! File operations that tolerate missing files.

use crate::error::{Error, Result};
use rustix::fs::OFlags;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The minimum interval at which a use is noted in a record's modification time.
const TOUCH_AFTER: Duration = Duration::from_secs(3600);

/// The metadata of a file or of a link itself; `None` when it does not exist.
pub(crate) fn metadata(path: &Path) -> Result<Option<Metadata>> {
    match std::fs::symlink_metadata(path) {
        // A directory above the path is a link to itself.
        Err(err) if err.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => Ok(None),
        found => if_exists(found, "read", path),
    }
}

/// Maps an error that [`Error::is_denied`] to `None`: the write would only have served later runs.
pub(crate) fn if_allowed<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(err) if err.is_denied() => Ok(None),
        result => result.map(Some),
    }
}

/// True if an error means that the path does not exist.
pub(crate) fn is_absent(err: &io::Error) -> bool {
    matches!(err.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Maps an error that means that the path does not exist to `None`.
pub(crate) fn if_exists<T>(result: io::Result<T>, what: &'static str, path: &Path) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(err) if is_absent(&err) => Ok(None),
        Err(err) => Err(Error::io(what, path)(err)),
    }
}

/// Updates the modification time of a file if it is older than `after`. The time is only a hint for `gc`, so
/// errors are ignored: a read-only store remains usable.
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

/// Updates the modification time of a record as [`touch`] does, at most once an hour.
pub(crate) fn touch_record(path: &Path, meta: &Metadata) {
    touch(path, meta, TOUCH_AFTER);
}

/// Adds the flags that keep opening a FIFO or a device from blocking. They do not affect regular files.
pub(crate) fn without_waiting(options: &mut OpenOptions, more: OFlags) -> &mut OpenOptions {
    options.custom_flags((OFlags::NONBLOCK | more).bits() as i32)
}
