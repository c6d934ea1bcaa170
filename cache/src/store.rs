//! The local store: plain files under one folder.

use crate::publish::{found, metadata, publish_new, touch};
use crate::{Artifact, ArtifactDigest, Blob, BlobDigest, BlobRef, BlobWriter, Error, Remote, Result};
use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The version of the layout. Raise it when a program that knows only the old one would misread the new one.
const FORMAT: &str = "1";

const FOLDERS: [&str; 9] = [
    "blobs", "actions", "memos", "recent", "stat", "scratch", "damaged", "locks", "tmp",
];

/// A store on the local disk. Cheap to clone; safe to use from several threads and processes.
#[derive(Clone, Debug)]
pub struct Store {
    inner: Arc<Inner>,
    /// Where it looks for what is not here.
    pub(crate) remote: Option<Remote>,
    /// Nothing longer is fetched from there, in bytes.
    pub(crate) longest_fetch: u64,
}

#[derive(Debug)]
struct Inner {
    root: PathBuf,
    /// What was hashed in this process, and so need not be again.
    verified: Mutex<HashSet<BlobDigest>>,
}

/// Whether two looks were at one file.
fn is_same(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

pub(crate) fn sharded(dir: &Path, hex: &str) -> PathBuf {
    dir.join(&hex[..2]).join(&hex[2..])
}

impl Store {
    /// Opens the store under `home`, making it if it is not there. After an unclean stop of the machine, what was
    /// written since the last [`Store::flush`] is hashed again first.
    ///
    /// # Errors
    /// When the folder cannot be made, or holds a store of another format.
    pub fn open(home: &Path) -> Result<Self> {
        let format = home.join("format");
        // An empty file, or one of zeros, is what a power failure leaves of a new store.
        let known = found(std::fs::read(&format), "read", &format)?
            .map(|text| {
                String::from_utf8_lossy(&text)
                    .trim_matches(['\0', '\n', ' '])
                    .to_owned()
            })
            .filter(|text| !text.is_empty());
        if let Some(text) = &known
            && text != FORMAT
        {
            return Err(Error::Format {
                path: home.to_owned(),
                found: text.chars().take(20).collect(),
                expected: FORMAT,
            });
        }
        for folder in FOLDERS {
            let folder = home.join(folder);
            std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        }
        // Locks, and with them the paths of a store, must not depend on the current folder of who uses it.
        let root = std::path::absolute(home).map_err(Error::io("open", home))?;
        let store = Self {
            inner: Arc::new(Inner {
                root,
                verified: Mutex::default(),
            }),
            remote: None,
            longest_fetch: u64::MAX,
        };
        if known.is_none() {
            store.replace_file(&format, &format!("{FORMAT}\n"))?;
        }
        store.recover()?;
        Ok(store)
    }

    /// The folder it lives in, as an absolute path.
    pub fn root(&self) -> &Path {
        &self.inner.root
    }

    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.inner.root.join(name)
    }

    /// Starts a blob of unknown length.
    ///
    /// # Errors
    /// When no temporary file can be made.
    pub fn writer(&self) -> Result<BlobWriter> {
        BlobWriter::new(self)
    }

    /// Stores bytes. Storing the same bytes twice is harmless, and writes them once.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn put(&self, bytes: &[u8]) -> Result<BlobRef> {
        let blob = BlobRef::of(bytes);
        if self.keep(blob)? {
            return Ok(blob);
        }
        let mut file = crate::publish::temporary(self.root())?;
        std::io::Write::write_all(&mut file, bytes).map_err(Error::io("write", file.path()))?;
        self.publish_blob(file, blob)?;
        Ok(blob)
    }

    /// Puts a complete file in place whose bytes were hashed while they were written.
    pub(crate) fn publish_blob(&self, mut file: tempfile::NamedTempFile, blob: BlobRef) -> Result<()> {
        let path = self.blob_path(blob.blob);
        while !self.keep(blob)? {
            match publish_new(self.root(), file, &path)? {
                None => {
                    self.set_verified(blob.blob);
                    break;
                }
                Some(back) => file = back,
            }
        }
        Ok(())
    }

    /// Whether the blob is there and sound: computing again heals whatever happened to one. A damaged one is moved away.
    fn keep(&self, blob: BlobRef) -> Result<bool> {
        let path = self.blob_path(blob.blob);
        let Some(meta) = metadata(&path)? else {
            return Ok(false);
        };
        if meta.len() != blob.size {
            self.set_aside(&path, &meta)?;
            return Ok(false);
        }
        match self.blob_here(blob.blob) {
            Ok(_) => {
                touch(&path, &meta, Duration::ZERO);
                Ok(true)
            }
            Err(err) if err.is_healed_by_recomputing() => Ok(false),
            Err(err) => Err(err),
        }
    }

    /// Where the blob lives, whether or not it exists.
    pub fn blob_path(&self, digest: BlobDigest) -> PathBuf {
        sharded(&self.folder("blobs"), &digest.to_hex())
    }

    /// Whether the blob is in this store or its remote, with the stated size (its bytes are not read).
    pub fn has(&self, blob: BlobRef) -> bool {
        self.has_here(blob) || self.has_there(blob)
    }

    /// Whether the blob is in this store itself, with the stated size (its bytes are not read).
    pub fn has_here(&self, blob: BlobRef) -> bool {
        std::fs::metadata(self.blob_path(blob.blob)).is_ok_and(|meta| meta.is_file() && meta.len() == blob.size)
    }

    /// Maps a blob into memory and checks its bytes on the first use in this process. Big blobs are hashed on rayon's
    /// current pool. One that is missing or damaged is fetched from the remote, if there is one that has it.
    ///
    /// # Errors
    /// [`Error::Missing`] or [`Error::Damaged`] (the file is then moved to `damaged/`); both are healed by running what
    /// made the blob again.
    pub fn blob(&self, digest: BlobDigest) -> Result<Blob> {
        match self.blob_here(digest) {
            Err(err) if err.is_healed_by_recomputing() => match self.fetch(digest)? {
                true => self.blob_here(digest),
                false => Err(err),
            },
            found => found,
        }
    }

    pub(crate) fn blob_here(&self, digest: BlobDigest) -> Result<Blob> {
        let path = self.blob_path(digest);
        let Some(file) = found(File::open(&path), "read", &path)? else {
            return Err(Error::Missing {
                digest: digest.to_hex(),
            });
        };
        let blob = Blob::map(&file).map_err(Error::io("map", &path))?;
        if !self.is_verified(digest) {
            // No lock is held meanwhile: a thread that helps rayon here may itself ask for a blob.
            if BlobRef::of(&blob).blob != digest {
                self.quarantine(&path, &file)?;
                return Err(Error::Damaged {
                    what: "blob",
                    digest: digest.to_hex(),
                });
            }
            self.set_verified(digest);
        }
        Ok(blob)
    }

    /// Checks a blob's bytes although they were checked before: something may have written to its file.
    ///
    /// # Errors
    /// As [`Store::blob`].
    pub fn recheck(&self, digest: BlobDigest) -> Result<()> {
        self.forget_verified(digest);
        self.blob(digest).map(|_| ())
    }

    /// Stores a manifest.
    ///
    /// # Errors
    /// When the store cannot be written, or an entry's path is absolute, leaves its directory or is there twice.
    pub fn put_artifact(&self, artifact: &Artifact) -> Result<ArtifactDigest> {
        let text = artifact.canonical();
        if let Err(reason) = artifact.check() {
            return Err(Error::Manifest {
                digest: BlobRef::of(text.as_bytes()).blob.to_hex(),
                reason,
            });
        }
        let blob = self.put(text.as_bytes())?;
        Ok(ArtifactDigest::from_bytes(*blob.blob.as_bytes()))
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// As [`Store::blob`], and [`Error::Manifest`] when it is not a manifest.
    pub fn artifact(&self, digest: ArtifactDigest) -> Result<Artifact> {
        self.manifest(digest).map(|(artifact, _)| artifact)
    }

    /// A manifest, and its length in bytes.
    pub(crate) fn manifest(&self, digest: ArtifactDigest) -> Result<(Artifact, u64)> {
        let blob = self.blob(digest.into())?;
        serde_json::from_slice(&blob)
            .map_err(|err| err.to_string())
            .and_then(|artifact: Artifact| artifact.check().map(|()| (artifact, blob.len() as u64)))
            .map_err(|reason| Error::Manifest {
                digest: digest.to_hex(),
                reason,
            })
    }

    /// Moves a damaged file out of the way, unless it has been replaced since it was opened as `seen`.
    pub(crate) fn quarantine(&self, path: &Path, seen: &File) -> Result<()> {
        let seen = seen.metadata().map_err(Error::io("read", path))?;
        self.set_aside(path, &seen)
    }

    /// Moves the file that was seen at `path` to `damaged/`. One that has taken its place since stays where it is.
    pub(crate) fn set_aside(&self, path: &Path, seen: &Metadata) -> Result<()> {
        if !metadata(path)?.is_some_and(|now| is_same(&now, seen)) {
            return Ok(());
        }
        let name = path.strip_prefix(self.root()).unwrap_or(path);
        let name = name.to_string_lossy().replace('/', "-");
        let aside = self.folder("damaged").join(name);
        found(std::fs::rename(path, &aside), "move away", path)?;
        // Another process may have put a sound one there since it was looked at.
        if metadata(&aside)?.is_some_and(|moved| !is_same(&moved, seen)) {
            found(std::fs::rename(&aside, path), "move back", path)?;
        }
        Ok(())
    }

    fn is_verified(&self, digest: BlobDigest) -> bool {
        self.verified().contains(&digest)
    }

    pub(crate) fn set_verified(&self, digest: BlobDigest) {
        self.verified().insert(digest);
    }

    pub(crate) fn forget_verified(&self, digest: BlobDigest) {
        self.verified().remove(&digest);
    }

    fn verified(&self) -> std::sync::MutexGuard<'_, HashSet<BlobDigest>> {
        self.inner.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
