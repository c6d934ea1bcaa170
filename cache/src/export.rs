//! Exporting artifacts as ordinary files.

use crate::artifact::Artifact;
use crate::error::{Error, Result};
use crate::fs::if_exists;
use crate::store::Store;
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

impl Store {
    /// Writes an artifact's entries as files below `dest`, which is created if it does not exist. An existing
    /// file of the same name is replaced; symbolic links are not followed, so that no file outside `dest` is
    /// written.
    ///
    /// # Errors
    /// When a blob is missing or damaged, the disk is full, or a directory cannot be created because a file
    /// of its name exists ([`Error::Export`]).
    pub fn export(&self, artifact: &Artifact, dest: &Path) -> Result<()> {
        artifact.check().map_err(|reason| Error::Entries { reason })?;
        std::fs::create_dir_all(dest).map_err(Error::io("create", dest))?;
        for entry in &artifact.entries {
            let blob = self.blob(entry.blob)?;
            let mut folder = dest.to_owned();
            let mut parts = entry.path.split('/').peekable();
            while let Some(part) = parts.next() {
                if parts.peek().is_some() {
                    folder.push(part);
                    create_folder(&folder)?;
                    continue;
                }
                let path = folder.join(part);
                if path.is_dir() && !path.is_symlink() {
                    return Err(Error::Export {
                        path,
                        reason: "a directory of this name exists",
                    });
                }
                let mut file = tempfile::Builder::new()
                    .prefix(".export-")
                    .permissions(Permissions::from_mode(0o666))
                    .tempfile_in(&folder)
                    .map_err(Error::io("write a file in", &folder))?;
                file.write_all(&blob).map_err(Error::io("write", &path))?;
                file.persist(&path)
                    .map_err(|err| Error::io("write", &path)(err.error))?;
            }
        }
        Ok(())
    }
}

/// Creates a directory, or checks that the existing one is not a symbolic link.
fn create_folder(path: &Path) -> Result<()> {
    match if_exists(std::fs::symlink_metadata(path), "read", path)? {
        None => std::fs::create_dir(path).map_err(Error::io("create", path)),
        Some(meta) if meta.is_dir() => Ok(()),
        Some(_) => Err(Error::Export {
            path: path.to_owned(),
            reason: "it is not a directory",
        }),
    }
}
