//! File operations that tolerate missing files.

use crate::error::{Error, Result};
use std::fs::{File, Metadata};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A use is noted in a record's modification time at most this often.
const TOUCH_AFTER: Duration = Duration::from_secs(3600);

/// The metadata of a file; `None` when it does not exist.
pub(crate) fn metadata(path: &Path) -> Result<Option<Metadata>> {
    if_exists(std::fs::metadata(path), "read", path)
}

/// Maps the error `NotFound` to `None`.
pub(crate) fn if_exists<T>(result: io::Result<T>, what: &'static str, path: &Path) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(err) => Err(Error::io(what, path)(err)),
    }
}

/// Maps an error that [`Error::is_denied`] to `None`: the write was a convenience of later runs.
pub(crate) fn if_allowed<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(err) if err.is_denied() => Ok(None),
        result => result.map(Some),
    }
}

/// Removes a file that may not exist.
pub(crate) fn remove_if_exists(path: &Path) -> Result<()> {
    if_exists(std::fs::remove_file(path), "remove", path).map(|_| ())
}

/// Updates the modification time of a file if it is older than `after`. It is a hint to `gc` only, so that errors are
/// ignored: a read-only store can be used all the same.
pub(crate) fn touch(path: &Path, meta: &Metadata, after: Duration) {
    let now = SystemTime::now();
    let fresh = meta
        .modified()
        .is_ok_and(|then| now.duration_since(then).unwrap_or_default() < after);
    if !fresh {
        File::open(path).and_then(|file| file.set_modified(now)).ok();
    }
}

/// [`touch`] for records, at most once an hour.
pub(crate) fn touch_record(path: &Path, meta: &Metadata) {
    touch(path, meta, TOUCH_AFTER);
}
