//! Artifacts as ordinary files.

use crate::publish::found;
use crate::{Artifact, BlobRef, Error, Result, Store};
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

impl Store {
    /// Writes an artifact's entries as files below `dest`, which is made if it is not there. A file of the same name is
    /// replaced; nothing is written through a symbolic link, so nothing outside `dest`.
    ///
    /// # Errors
    /// When a blob is missing or damaged, the disk is full, or something that is no folder stands where one is needed
    /// ([`Error::Export`]).
    pub fn export(&self, artifact: &Artifact, dest: &Path) -> Result<()> {
        artifact.check().map_err(|reason| Error::Manifest {
            digest: BlobRef::of(artifact.canonical().as_bytes()).blob.to_hex(),
            reason,
        })?;
        std::fs::create_dir_all(dest).map_err(Error::io("create", dest))?;
        for entry in &artifact.entries {
            let blob = self.blob(entry.blob)?;
            let mut folder = dest.to_owned();
            let mut parts = entry.path.split('/').peekable();
            while let Some(part) = parts.next() {
                if parts.peek().is_some() {
                    folder.push(part);
                    real_folder(&folder)?;
                    continue;
                }
                let path = folder.join(part);
                if path.is_dir() && !path.is_symlink() {
                    return Err(Error::Export {
                        path,
                        reason: "there is a folder of this name",
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

/// Makes a folder, or sees that what is there is one and no link to one elsewhere.
fn real_folder(path: &Path) -> Result<()> {
    match found(std::fs::symlink_metadata(path), "read", path)? {
        None => std::fs::create_dir(path).map_err(Error::io("create", path)),
        Some(meta) if meta.is_dir() => Ok(()),
        Some(_) => Err(Error::Export {
            path: path.to_owned(),
            reason: "it is not a folder, and one is needed here",
        }),
    }
}
