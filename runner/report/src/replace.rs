//! Files that others read while they are replaced.

use std::path::Path;
use std::{fs, io};

/// Writes a file that is renamed into place: nobody reads half of it, and anything but a regular file there
/// is replaced rather than waited for. Its directory is made if it is missing.
///
/// # Errors
/// If the file cannot be written.
pub fn replace(path: &Path, content: &str) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = Path::new(&new);
    let _ = fs::remove_file(new);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let written = folder
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(new, content))
        .and_then(|()| fs::rename(new, path));
    if written.is_err() {
        let _ = fs::remove_file(new);
    }
    written
}
