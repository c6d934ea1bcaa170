//! Stores that several users share.
//!
//! The directory of such a store has the set-group-ID bit and is writable for its group (`chmod g+ws`). By
//! the bit, files created below it belong to that group; this module makes them writable for the group,
//! whatever the umask is. In other stores nothing changes.

use rustix::fs::{Access, CWD, RenameFlags, access, renameat_with};
use std::fs::{Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

/// The mode bits of a shared directory: set-group-ID, and writable for the group.
const SHARED: u32 = 0o2020;

/// Creates a directory. A shared directory gets its name only once it is writable for the group: otherwise a
/// kill between the two steps would leave it closed to the other users for good.
pub fn create_dir(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let Some(parent) = parent.filter(|parent| std::fs::metadata(parent).is_ok_and(|meta| is_shared(&meta)))
    else {
        return std::fs::create_dir(path);
    };
    if std::fs::symlink_metadata(path).is_ok() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    let new = tempfile::Builder::new()
        .prefix(".new-")
        .make_in(parent, |path| std::fs::create_dir(path))?
        .into_temp_path()
        .keep()?;
    let named = share(&new, 0o2070).and_then(|()| {
        // Renaming an empty directory over one that another process has created meanwhile fails or does no
        // harm.
        renameat_with(CWD, &new, CWD, path, RenameFlags::NOREPLACE)
            .map_err(io::Error::from)
            .or_else(|err| match err.kind() {
                ErrorKind::AlreadyExists => Err(err),
                _ => std::fs::rename(&new, path),
            })
    });
    named.map_err(|err| {
        let _ = std::fs::remove_dir(&new);
        match err.kind() {
            ErrorKind::DirectoryNotEmpty => ErrorKind::AlreadyExists.into(),
            _ => err,
        }
    })
}

/// Creates a directory and its missing parents.
pub fn create_dir_all(path: &Path) -> io::Result<()> {
    match create_dir(path) {
        Err(err) if err.kind() == ErrorKind::NotFound => {
            let parent = path.parent().ok_or(err)?;
            create_dir_all(parent)?;
            match create_dir(path) {
                Err(err) if err.kind() == ErrorKind::AlreadyExists => Ok(()),
                created => created,
            }
        }
        // Some file systems report another error although the directory exists.
        Err(_) if path.is_dir() => Ok(()),
        created => created,
    }
}

/// Makes a new file readable and writable for the group.
pub fn share_file(path: &Path) -> io::Result<()> {
    share(path, 0o060)
}

/// True if this user may create files in the directory, or, if it does not exist, in its nearest existing
/// ancestor.
pub fn is_writable(dir: &Path) -> bool {
    let nearest = dir.ancestors().find(|dir| dir.exists());
    nearest.is_some_and(|dir| access(dir, Access::WRITE_OK | Access::EXEC_OK).is_ok())
}

/// True if the path is a directory of a group's store.
pub(crate) fn is_shared_directory(dir: &Path) -> bool {
    std::fs::metadata(dir).is_ok_and(|meta| is_shared(&meta))
}

fn is_shared(meta: &Metadata) -> bool {
    meta.mode() & SHARED == SHARED
}

fn share(path: &Path, bits: u32) -> io::Result<()> {
    match path.parent() {
        Some(parent) if is_shared(&std::fs::metadata(parent)?) => {
            let mode = std::fs::metadata(path)?.mode();
            std::fs::set_permissions(path, Permissions::from_mode(mode & 0o7777 | bits))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_directory_in_a_shared_one_is_never_seen_closed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o2775)).unwrap();
        let (path, over) = (dir.path().join("x"), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let watch = scope.spawn(|| {
                let mut seen = 0;
                while !over.load(Ordering::Relaxed) {
                    if let Ok(meta) = std::fs::metadata(&path) {
                        assert_eq!(meta.mode() & 0o2070, 0o2070, "mode {:o}", meta.mode());
                        seen += 1;
                    }
                }
                seen
            });
            for _ in 0..2000 {
                create_dir(&path).unwrap();
                assert_eq!(create_dir(&path).unwrap_err().kind(), ErrorKind::AlreadyExists);
                std::fs::remove_dir(&path).unwrap();
            }
            over.store(true, Ordering::Relaxed);
            assert!(watch.join().unwrap() > 0);
        });
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn several_at_once_create_one_directory() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o2775)).unwrap();
        for n in 0..200 {
            let path = dir.path().join(n.to_string());
            let created = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| create_dir(&path))).collect();
                let ended = threads.into_iter().map(|thread| thread.join().unwrap());
                ended.filter(Result::is_ok).count()
            });
            assert_eq!(created, 1);
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 200);
    }
}
