//! Exporting artifacts as ordinary files.

use crate::artifact::Artifact;
use crate::error::{Error, Result};
use crate::fs::if_exists;
use crate::store::Store;
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

impl Store {
    /// Writes an artifact's entries as files below `dest`, which is created if it does not exist. An existing
    /// file of the same name is replaced; symbolic links are not followed, so that no file outside `dest` is
    /// written.
    ///
    /// # Errors
    /// When a blob is missing or damaged, the disk is full, a directory cannot be created because a file of
    /// its name exists, or two names are one on the file system of `dest` ([`Error::Export`]).
    pub fn export(&self, artifact: &Artifact, dest: &Path) -> Result<()> {
        artifact.check().map_err(|reason| Error::Entries { reason })?;
        std::fs::create_dir_all(dest).map_err(Error::io("create", dest))?;
        let mut written: BTreeMap<String, PathBuf> = BTreeMap::new();
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
                // Where case is ignored, one would replace the other.
                if let Some(other) = written.insert(entry.path.to_lowercase(), path.clone())
                    && is_same_file(&other, &path)
                {
                    return Err(Error::Export {
                        path,
                        reason: "this file system ignores case, and has another file of the artifact there",
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

fn is_same_file(a: &Path, b: &Path) -> bool {
    let id = |path| {
        std::fs::symlink_metadata(path)
            .map(|meta| (meta.dev(), meta.ino()))
            .ok()
    };
    id(a).is_some_and(|a| id(b) == Some(a))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ArtifactBuilder;

    #[test]
    fn names_that_differ_in_case_are_two_files_or_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("home")).unwrap();
        let mut builder = ArtifactBuilder::new(&store, "file", serde_json::json!({ "folder": true }));
        builder.bytes("a.csv", b"small").unwrap();
        builder.bytes("A.csv", b"capital").unwrap();
        let artifact = store.artifact(builder.finish().unwrap()).unwrap();
        let (dest, read) = (dir.path().join("out"), |path| std::fs::read(path).unwrap());
        std::fs::write(dir.path().join("case"), "").unwrap();
        match store.export(&artifact, &dest) {
            Ok(()) => assert_eq!(
                (read(dest.join("a.csv")), read(dest.join("A.csv"))),
                (b"small".to_vec(), b"capital".to_vec())
            ),
            Err(err) => assert!(dir.path().join("CASE").exists(), "{err}"),
        }
        // Again, over what is there.
        assert_eq!(
            store.export(&artifact, &dest).is_ok(),
            !dir.path().join("CASE").exists()
        );
    }

    #[test]
    fn a_file_of_two_names_is_recognised() {
        let dir = tempfile::tempdir().unwrap();
        let [a, b, c] = ["a", "b", "c"].map(|name| dir.path().join(name));
        std::fs::write(&a, "x").unwrap();
        std::fs::write(&b, "x").unwrap();
        std::fs::hard_link(&a, &c).unwrap();
        assert!(is_same_file(&a, &c) && !is_same_file(&a, &b));
        assert!(!is_same_file(&dir.path().join("d"), &dir.path().join("e")));
    }
}
