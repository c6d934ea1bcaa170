//! Files that others read while they are replaced.

use std::path::Path;
use std::{fs, io};

/// Writes a file that is renamed into place: nobody reads half of it, and anything but a regular file there
/// is replaced rather than waited for.
///
/// # Errors
/// If the file cannot be written.
pub fn replace(path: &Path, content: &str) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = Path::new(&new);
    let _ = fs::remove_file(new);
    let written = fs::write(new, content).and_then(|()| fs::rename(new, path));
    if written.is_err() {
        let _ = fs::remove_file(new);
    }
    written
}
