//! The inputs of external programs.
//!
//! | isolation | file | why it cannot reach the store |
//! | --- | --- | --- |
//! | namespaces, container | a reflink, or else a hard link, or else a copy | mounted read-only |
//! | Landlock, none | a reflink, or else a copy | it shares no inode with the store |
//!
//! A program without isolation, of this run or another, can write to any file of its user, the inputs of
//! isolated programs among them: whatever the isolation, the files and the store's blobs are hashed again
//! before anything is recorded.

use super::files::{Stop, clone_or_create, copy_file, create_parent, failed, refuse_existing};
use cache::{Artifact, BlobDigest, BlobRef, Error, Store, shared};
use runner_pipeline::plain_path;
use stages_core::StageError;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The input files of one program.
pub(super) struct InputFiles {
    /// If set, files may be hard links to blobs of the store.
    links: bool,
    written: Vec<(BlobDigest, PathBuf)>,
}

/// The last device found not to support reflinks. It is not tried again for each file.
static WITHOUT_CLONES: AtomicU64 = AtomicU64::new(u64::MAX);

impl InputFiles {
    /// Creates an empty set of input files. `read_only` states that the program cannot write to its inputs,
    /// whatever their permissions.
    pub(super) fn new(read_only: bool) -> Self {
        Self {
            links: read_only,
            written: Vec::new(),
        }
    }

    /// Writes an artifact's files below `base`, read-only, and returns its path: the file if the artifact is
    /// a single file, the directory otherwise.
    pub(super) fn write_out(
        &mut self,
        store: &Store,
        artifact: &Artifact,
        base: &Path,
        stop: Stop<'_>,
    ) -> Result<PathBuf, StageError> {
        shared::create_dir_all(base).map_err(failed("create", base))?;
        let is_folder = artifact.meta["folder"] == serde_json::json!(true);
        let is_file = !is_folder && artifact.entries.len() == 1;
        for entry in &artifact.entries {
            // A command receives the path of a file, and finds the files of a directory by their own names.
            let name = if is_file {
                plain_path(&entry.path)
            } else {
                entry.path.as_str().into()
            };
            let to = base.join(&*name);
            if entry.path.contains('/') {
                create_parent(&to)?;
            }
            stop()?;
            // Reading the blob verifies its checksum.
            store.blob(entry.blob)?;
            let from = store.blob_path(entry.blob);
            if self.place(&from, &to, stop)? {
                fs::set_permissions(&to, Permissions::from_mode(0o444)).map_err(failed("write", &to))?;
            }
            self.written.push((entry.blob, to));
        }
        Ok(match artifact.entries.as_slice() {
            [entry] if is_file => base.join(&*plain_path(&entry.path)),
            _ => base.to_owned(),
        })
    }

    /// Returns true if the file is not shared with the store's file.
    fn place(&self, from: &Path, to: &Path, stop: Stop<'_>) -> Result<bool, StageError> {
        refuse_existing(to)?;
        let device = fs::metadata(from).map_err(failed("read", from))?.dev();
        if WITHOUT_CLONES.load(Relaxed) != device {
            let clone = || io::Result::Ok(clone_or_create(&File::open(from)?, to)?.is_none());
            if clone().map_err(failed("write", to))? {
                return Ok(true);
            }
            fs::remove_file(to).map_err(failed("remove", to))?;
            WITHOUT_CLONES.store(device, Relaxed);
        }
        if self.links && fs::hard_link(from, to).is_ok() {
            return Ok(false);
        }
        copy_file(from, to, stop).map(|()| true)
    }

    /// Fails if an input or a blob of the store no longer matches the key, or if `stop` returns an error.
    pub(super) fn check(&self, store: &Store, stop: Stop<'_>) -> Result<(), StageError> {
        for (blob, path) in &self.written {
            // A path that is no longer a regular file is not opened: opening a named pipe would block.
            let is_file = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file());
            let read = is_file.then(|| BlobRef::of_file_unless(path, &|| stop().is_err()));
            let same = read.is_some_and(|read| read.is_ok_and(|read| read.blob == *blob));
            let damaged = matches!(store.recheck(*blob), Err(Error::Damaged { .. }));
            // An interrupted read does not mean that the content differs.
            stop()?;
            if !same || damaged {
                let (message, remedy) = if self.links {
                    (
                        "one of its inputs was modified while it ran",
                        "a program without isolation, or another process, writes to the store",
                    )
                } else {
                    ("the command modified one of its inputs", "let it work on a copy")
                };
                return Err(StageError::new(message).hint(if damaged {
                    format!(
                        "{remedy}; the damaged file of the store was removed and is computed again when \
                        needed"
                    )
                } else {
                    remedy.to_owned()
                }));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cache::ArtifactBuilder;

    /// A store with an artifact of one file, and a directory for inputs.
    struct Home {
        dir: tempfile::TempDir,
        store: Store,
        blob: BlobRef,
        artifact: Artifact,
    }

    fn home(name: &str, folder: bool) -> Home {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("home")).unwrap();
        let mut builder = ArtifactBuilder::new(&store, "file", serde_json::json!({ "folder": folder }));
        let blob = builder.bytes(name, b"as it was").unwrap();
        let artifact = store.artifact(builder.finish().unwrap()).unwrap();
        Home {
            dir,
            store,
            blob,
            artifact,
        }
    }

    impl Home {
        fn write_out(&self) -> (InputFiles, PathBuf) {
            let mut files = InputFiles::new(false);
            let to = self.dir.path().join("in");
            let path = files.write_out(&self.store, &self.artifact, &to, &|| Ok(())).unwrap();
            (files, path)
        }
    }

    fn overwrite(path: &Path) {
        fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
        fs::write(path, b"otherwise").unwrap();
    }

    #[test]
    fn what_writes_to_its_input_is_found_out() {
        let home = home("a.txt", false);
        let (files, path) = home.write_out();
        assert_eq!(fs::read(&path).unwrap(), b"as it was");
        let inode = |path: &Path| fs::metadata(path).unwrap().ino();
        assert_ne!(inode(&path), inode(&home.store.blob_path(home.blob.blob)));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o444);
        files.check(&home.store, &|| Ok(())).unwrap();
        let times = fs::metadata(&path).unwrap().modified().unwrap();
        overwrite(&path);
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(times).unwrap();
        let error = files.check(&home.store, &|| Ok(())).unwrap_err();
        assert!(error.message.contains("modified one of its inputs"), "{error}");
        assert!(home.store.has(home.blob), "the store has its own");
        let stopped = files.check(&home.store, &|| Err(StageError::interrupted()));
        assert_eq!(stopped.unwrap_err().cause, stages_core::error::Cause::Interrupted);
    }

    #[test]
    fn a_single_file_has_a_plain_path_and_those_of_a_directory_their_names() {
        const NAME: &str = "SPX options (2019).csv";
        let (file, folder) = (home(NAME, false), home(NAME, true));
        let path = file.write_out().1;
        assert_eq!(path, file.dir.path().join("in/SPX_options__2019_.csv"));
        assert!(path.is_file());
        assert!(folder.write_out().1.join(NAME).is_file());
    }

    #[test]
    fn a_name_that_is_taken_is_not_overwritten() {
        let home = home("a.txt", false);
        fs::create_dir(home.dir.path().join("in")).unwrap();
        fs::write(home.dir.path().join("in/a.txt"), "of another input").unwrap();
        let to = home.dir.path().join("in");
        let error = InputFiles::new(false)
            .write_out(&home.store, &home.artifact, &to, &|| Ok(()))
            .unwrap_err();
        assert!(error.message.contains("in/a.txt` is there already"), "{error}");
        assert_eq!(fs::read(to.join("a.txt")).unwrap(), b"of another input");
    }

    #[test]
    fn damage_of_the_store_is_found_out() {
        let home = home("a.txt", false);
        let (files, _) = home.write_out();
        overwrite(&home.store.blob_path(home.blob.blob));
        assert!(files.check(&home.store, &|| Ok(())).is_err());
        assert!(!home.store.has(home.blob), "it is out of the way");
    }
}
