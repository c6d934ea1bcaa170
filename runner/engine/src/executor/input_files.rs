//! The inputs of external programs.
//!
//! | isolation | file | why it cannot reach the store |
//! | --- | --- | --- |
//! | namespaces, container | a reflink, or else a hard link, or else a copy | mounted read-only |
//! | none | a reflink, or else a copy | it shares no inode with the store |
//!
//! A program without isolation, of this run or another, can write to any file of its user, the inputs of isolated programs among them: whatever the
//! isolation, the files and the store's blobs are hashed again before anything is recorded.

use super::files::{create_parent, failed};
use cache::{Artifact, BlobDigest, BlobRef, Error, Store};
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
    /// If set, files may be hard links of blobs.
    links: bool,
    written: Vec<(BlobDigest, PathBuf)>,
}

/// The last device found not to support reflinks. It is not tried again for each file.
static WITHOUT_CLONES: AtomicU64 = AtomicU64::new(u64::MAX);

impl InputFiles {
    /// `read_only` tells that the program cannot write to its inputs, whatever their permissions.
    pub fn new(read_only: bool) -> Self {
        Self {
            links: read_only,
            written: Vec::new(),
        }
    }

    /// Writes an artifact's files below `base`, read-only, and returns its path: the file if the artifact is a single file,
    /// the directory otherwise.
    pub fn write_out(&mut self, store: &Store, artifact: &Artifact, base: &Path) -> Result<PathBuf, StageError> {
        fs::create_dir_all(base).map_err(failed("create", base))?;
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
            // Reading the blob verifies its checksum.
            store.blob(entry.blob)?;
            let from = store.blob_path(entry.blob);
            if self.place(&from, &to).map_err(failed("write", &to))? {
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
    fn place(&self, from: &Path, to: &Path) -> io::Result<bool> {
        // A file system that ignores case takes two names for one.
        if fs::symlink_metadata(to).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let device = fs::metadata(from)?.dev();
        if WITHOUT_CLONES.load(Relaxed) != device {
            if reflink(from, to) {
                return Ok(true);
            }
            WITHOUT_CLONES.store(device, Relaxed);
        }
        if self.links && fs::hard_link(from, to).is_ok() {
            return Ok(false);
        }
        fs::copy(from, to).map(|_| true)
    }

    /// Fails if an input or a blob of the store is no longer what the key says.
    pub fn check(&self, store: &Store) -> Result<(), StageError> {
        for (blob, path) in &self.written {
            // What is no file any more is not opened: a named pipe would block.
            let is_file = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file());
            let same = is_file && BlobRef::of_file(path).is_ok_and(|read| read.blob == *blob);
            let damaged = matches!(store.recheck(*blob), Err(Error::Damaged { .. }));
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
                    format!("{remedy}; the damaged file of the store was removed and is computed again when needed")
                } else {
                    remedy.to_owned()
                }));
            }
        }
        Ok(())
    }
}

/// Returns true if the file system created a reflink.
fn reflink(from: &Path, to: &Path) -> bool {
    #[cfg(target_os = "linux")]
    {
        let clone = || -> io::Result<()> {
            let (source, target) = (File::open(from)?, File::create_new(to)?);
            rustix::fs::ioctl_ficlone(&target, &source)?;
            Ok(())
        };
        let cloned = clone().is_ok();
        if !cloned {
            let _ = fs::remove_file(to);
        }
        cloned
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (from, to, File::open::<&Path>);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cache::ArtifactBuilder;

    #[test]
    fn what_writes_to_its_input_is_found_out() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("home")).unwrap();
        let mut builder = ArtifactBuilder::new(&store, "file", serde_json::json!({}));
        let blob = builder.bytes("a.txt", b"as it was").unwrap();
        let artifact = store.artifact(builder.finish().unwrap()).unwrap();
        let mut files = InputFiles::new(false);
        let path = files.write_out(&store, &artifact, &dir.path().join("in")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"as it was");
        let inode = |path: &Path| fs::metadata(path).unwrap().ino();
        assert_ne!(inode(&path), inode(&store.blob_path(blob.blob)));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o444);
        files.check(&store).unwrap();
        let times = fs::metadata(&path).unwrap().modified().unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        fs::write(&path, b"otherwise").unwrap();
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(times)
            .unwrap();
        let error = files.check(&store).unwrap_err();
        assert!(error.message.contains("modified one of its inputs"), "{error}");
        assert!(store.has(blob), "the store has its own");
    }

    #[test]
    fn a_single_file_has_a_plain_path_and_those_of_a_directory_their_names() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("home")).unwrap();
        let written = |folder: bool, to: &str| {
            let mut builder = ArtifactBuilder::new(&store, "file", serde_json::json!({ "folder": folder }));
            builder.bytes("SPX options (2019).csv", b"x").unwrap();
            let artifact = store.artifact(builder.finish().unwrap()).unwrap();
            let mut files = InputFiles::new(false);
            files.write_out(&store, &artifact, &dir.path().join(to)).unwrap()
        };
        let file = written(false, "file");
        assert_eq!(file, dir.path().join("file/SPX_options__2019_.csv"));
        assert!(file.is_file());
        assert!(written(true, "folder").join("SPX options (2019).csv").is_file());
    }

    #[test]
    fn damage_of_the_store_is_found_out() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("home")).unwrap();
        let mut builder = ArtifactBuilder::new(&store, "file", serde_json::json!({}));
        let blob = builder.bytes("a.txt", b"as it was").unwrap();
        let artifact = store.artifact(builder.finish().unwrap()).unwrap();
        let mut files = InputFiles::new(false);
        files.write_out(&store, &artifact, &dir.path().join("in")).unwrap();
        let path = store.blob_path(blob.blob);
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        fs::write(&path, b"otherwise").unwrap();
        assert!(files.check(&store).is_err());
        assert!(!store.has(blob), "it is out of the way");
    }
}
