//! The inputs of external programs: files that share the store's blocks if the file system supports it.

use super::files::{create_parent, failed};
use cache::{Artifact, BlobDigest, Error, Store};
use runner_pipeline::plain_path;
use stages_core::StageError;
use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The blobs that a program received as hard links. A program that runs as root, or changes permissions, can write through
/// one; [`InputLinks::check`] detects that.
#[derive(Default)]
pub(super) struct InputLinks(Vec<(BlobDigest, Stamp)>);

/// The last device found not to support reflinks. It is not tried again for each file.
static WITHOUT_CLONES: AtomicU64 = AtomicU64::new(u64::MAX);

/// The metadata that a write changes: size and modification time.
type Stamp = (u64, i64, i64);

fn stamp(meta: &Metadata) -> Stamp {
    (meta.size(), meta.mtime(), meta.mtime_nsec())
}

impl InputLinks {
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
            if self.place(entry.blob, &from, &to).map_err(failed("write", &to))? {
                fs::set_permissions(&to, Permissions::from_mode(0o444)).map_err(failed("write", &to))?;
            }
        }
        Ok(match artifact.entries.as_slice() {
            [entry] if is_file => base.join(&*plain_path(&entry.path)),
            _ => base.to_owned(),
        })
    }

    /// Creates a reflink, or else a hard link, or else a copy. Returns true if the file is not shared with the store's file.
    fn place(&mut self, blob: BlobDigest, from: &Path, to: &Path) -> io::Result<bool> {
        let meta = fs::metadata(from)?;
        if WITHOUT_CLONES.load(Relaxed) != meta.dev() {
            if reflink(from, to) {
                return Ok(true);
            }
            WITHOUT_CLONES.store(meta.dev(), Relaxed);
        }
        if fs::hard_link(from, to).is_ok() {
            self.0.push((blob, stamp(&meta)));
            return Ok(false);
        }
        fs::copy(from, to).map(|_| true)
    }

    /// Fails if the program modified one of its inputs, and has the store verify the modified blobs.
    pub fn check(&self, store: &Store) -> Result<(), StageError> {
        for (blob, before) in &self.0 {
            let now = fs::metadata(store.blob_path(*blob)).map(|meta| stamp(&meta));
            if now.is_ok_and(|now| now != *before) && matches!(store.recheck(*blob), Err(Error::Damaged { .. })) {
                return Err(
                    StageError::new("the command modified one of its inputs, which is a file of the store")
                        .hint("let it work on a copy; the damaged file was removed and is computed again when needed"),
                );
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
        let mut links = InputLinks::default();
        let path = links.write_out(&store, &artifact, &dir.path().join("in")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"as it was");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o444);
        links.check(&store).unwrap();
        if links.0.is_empty() {
            eprintln!("skipped: this file system gives no hard links, or better ones");
            return;
        }
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        fs::write(&path, b"otherwise").unwrap();
        assert!(
            links
                .check(&store)
                .unwrap_err()
                .message
                .contains("modified one of its inputs")
        );
        assert!(!store.has(blob), "it is out of the way");
    }
}
