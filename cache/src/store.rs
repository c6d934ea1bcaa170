//! The local store: plain files under one directory.

use crate::artifact::Artifact;
use crate::atomic_write::{TempFile, persist_new, temp_file};
use crate::blob::{Blob, BlobRef};
use crate::digest::{ArtifactDigest, BlobDigest};
use crate::error::{Error, Result};
use crate::fetched_file::{FetchedFile, OnBytes, RemoteFile, Seen};
use crate::fs::{if_exists, metadata, touch};
use crate::obstacle::move_away;
use crate::owner::Members;
use crate::parallel::locked;
use crate::regular_file::{Opened, open_own};
use crate::upstream::Upstream;
use std::collections::HashSet;
use std::fmt::Debug;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The number of attempts to rename a blob to its final path.
const ATTEMPTS: usize = 20;

/// Fetches remote files into the store. During the fetcher's lifetime, a URL always has the same contents.
pub trait FetchFiles: Debug + Send + Sync {
    /// Determines the state of a file without fetching it.
    ///
    /// # Errors
    /// [`Error::File`](crate::Error::File) when the server does not answer or refuses the request, or when
    /// the local store fails.
    fn look(&self, store: &Store, file: &RemoteFile) -> Result<Seen>;

    /// Returns the contents of a file, fetched if the store does not have them.
    ///
    /// # Errors
    /// The errors of [`FetchFiles::look`], or when the bytes do not match a pinned file's digest.
    fn fetch(&self, store: &Store, file: &RemoteFile, on_bytes: OnBytes<'_>) -> Result<FetchedFile>;

    /// Notes for the user, each once: for example, that servers were not asked for files.
    fn take_notes(&self) -> Vec<String>;
}

/// A store on the local disk. Cheap to clone; safe to use from several threads and processes.
#[derive(Clone, Debug)]
pub struct Store {
    inner: Arc<Inner>,
    /// The fallback for objects that are not in the local store.
    pub(crate) upstream: Option<Arc<dyn Upstream>>,
    /// The fetcher of remote files.
    pub(crate) files: Option<Arc<dyn FetchFiles>>,
    /// The longest blob that is fetched from the upstream, in bytes.
    pub(crate) fetch_limit: u64,
    interrupt: Interrupt,
}

/// Returns true when long work should stop.
#[derive(Clone, Default)]
struct Interrupt(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Debug for Interrupt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Interrupt").field(&self.0.is_some()).finish()
    }
}

#[derive(Debug)]
struct Inner {
    root: PathBuf,
    /// On a store that several hosts share, this process among the owners of locks.
    members: Option<Arc<Members>>,
    /// Blobs whose bytes were checked in this process.
    verified: Mutex<HashSet<BlobDigest>>,
}

/// True if both metadata belong to the same file.
fn is_same_file(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

pub(crate) fn sharded(dir: &Path, hex: &str) -> PathBuf {
    dir.join(&hex[..2]).join(&hex[2..])
}

impl Store {
    /// A store at the absolute path `root`, whose directories already exist.
    pub(crate) fn at(root: PathBuf, takeover: Option<Duration>) -> Self {
        Self {
            inner: Arc::new(Inner {
                members: takeover.map(|takeover| Members::share(&root, takeover)),
                root,
                verified: Mutex::default(),
            }),
            upstream: None,
            files: None,
            fetch_limit: u64::MAX,
            interrupt: Interrupt::default(),
        }
    }

    /// Returns the store, which now stops hashing a large source file or blob with [`Error::Interrupted`]
    /// once `is_interrupted` returns true.
    #[must_use]
    pub fn with_interrupt(mut self, is_interrupted: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.interrupt = Interrupt(Some(Arc::new(is_interrupted)));
        self
    }

    /// True once long work should stop.
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.0.as_ref().is_some_and(|is_interrupted| is_interrupted())
    }

    /// The directory of the store, as an absolute path.
    pub fn root(&self) -> &Path {
        &self.inner.root
    }

    /// True if several hosts share the store ([`Store::open_shared`]).
    pub fn is_shared(&self) -> bool {
        self.inner.members.is_some()
    }

    /// On a store that several hosts share, the time after which a silent owner of locks is dead.
    pub fn takeover(&self) -> Option<Duration> {
        self.members().map(|members| members.takeover)
    }

    /// On a store that several hosts share, this process among the owners of locks.
    pub(crate) fn members(&self) -> Option<&Members> {
        self.inner.members.as_deref()
    }

    /// The free space of the store's disk in bytes, if known.
    pub fn free_space(&self) -> Option<u64> {
        let disk = rustix::fs::statvfs(self.root()).ok()?;
        Some(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.inner.root.join(name)
    }

    /// Stores bytes. Storing the same bytes twice is harmless, and writes them only once.
    pub fn put(&self, bytes: &[u8]) -> Result<BlobRef> {
        let blob = BlobRef::of(bytes);
        if self.reuse(blob)? {
            return Ok(blob);
        }
        let mut file = temp_file(self.root())?;
        file.append(bytes).map_err(Error::io("write", file.path()))?;
        self.persist_blob(file, blob)?;
        Ok(blob)
    }

    /// Renames a complete file, which was hashed while it was written, to its blob's final path.
    pub(crate) fn persist_blob(&self, mut file: TempFile, blob: BlobRef) -> Result<()> {
        let path = self.blob_path(blob.blob);
        // Another process may write or quarantine the blob between the two steps, but not again and again.
        for _ in 0..ATTEMPTS {
            if self.reuse(blob)? {
                return Ok(());
            }
            match persist_new(self.root(), file, &path)? {
                None => {
                    self.set_verified(blob.blob);
                    return Ok(());
                }
                Some(back) => file = back,
            }
        }
        Err(Error::io("write", &path)(std::io::Error::other(
            "another file takes its place again and again",
        )))
    }

    /// True if the blob exists and is intact. A damaged blob is quarantined, so that recomputing replaces it.
    fn reuse(&self, blob: BlobRef) -> Result<bool> {
        let path = self.blob_path(blob.blob);
        let Some(meta) = metadata(&path)? else {
            return Ok(false);
        };
        if !meta.is_file() || meta.len() != blob.size {
            self.quarantine(&path, &meta)?;
            return Ok(false);
        }
        match self.local_blob(blob.blob) {
            Ok(_) => {
                touch(&path, &meta, Duration::ZERO);
                Ok(true)
            }
            Err(err) if err.is_healed_by_recomputing() => Ok(false),
            Err(err) => Err(err),
        }
    }

    /// The path of a blob, whether or not it exists.
    pub fn blob_path(&self, digest: BlobDigest) -> PathBuf {
        sharded(&self.folder("blobs"), &digest.to_hex())
    }

    /// True if the blob is in the local store with the stated size (its bytes are not read).
    pub fn has_here(&self, blob: BlobRef) -> bool {
        std::fs::symlink_metadata(self.blob_path(blob.blob))
            .is_ok_and(|meta| meta.is_file() && meta.len() == blob.size)
    }

    /// Maps a blob as [`Store::blob`] does, without the fallback to the upstream.
    pub fn local_blob(&self, digest: BlobDigest) -> Result<Blob> {
        let path = self.blob_path(digest);
        let file = match open_own(&path)? {
            Opened::Regular(file, _) => file,
            Opened::Foreign(seen) => {
                self.quarantine(&path, &seen)?;
                return Err(Error::damaged("blob", digest));
            }
            Opened::Absent => {
                return Err(Error::missing(digest));
            }
        };
        let blob = Blob::map(&file).map_err(Error::io("map", &path))?;
        if !self.is_verified(digest) {
            // No lock is held while hashing: a thread that processes rayon tasks here may itself open a blob.
            let Some(read) = BlobRef::of_unless(&blob, &|| self.is_interrupted()) else {
                return Err(Error::Interrupted { path });
            };
            if read.blob != digest {
                self.quarantine_open(&path, &file)?;
                return Err(Error::damaged("blob", digest));
            }
            self.set_verified(digest);
        }
        Ok(blob)
    }

    /// Stores a manifest.
    ///
    /// # Errors
    /// When the store cannot be written, or an entry's path is absolute, leaves its directory or occurs
    /// twice.
    pub fn put_artifact(&self, artifact: &Artifact) -> Result<ArtifactDigest> {
        artifact.check().map_err(|reason| Error::Entries { reason })?;
        let blob = self.put(artifact.canonical().as_bytes())?;
        Ok(ArtifactDigest::from_bytes(*blob.blob.as_bytes()))
    }

    /// Quarantines a damaged file that is open as `seen`, unless it has been replaced meanwhile.
    pub(crate) fn quarantine_open(&self, path: &Path, seen: &File) -> Result<()> {
        let seen = seen.metadata().map_err(Error::io("read", path))?;
        self.quarantine(path, &seen)
    }

    /// Moves the object at `path` whose metadata is `seen` to `damaged/`. An object that has replaced it
    /// meanwhile stays.
    pub(crate) fn quarantine(&self, path: &Path, seen: &Metadata) -> Result<()> {
        if !metadata(path)?.is_some_and(|now| is_same_file(&now, seen)) {
            return Ok(());
        }
        let Some(target) = move_away(self.root(), path)? else {
            return Ok(());
        };
        // Another process may have replaced the file between the check and the rename.
        if metadata(&target)?.is_some_and(|moved| !is_same_file(&moved, seen)) {
            if_exists(std::fs::rename(&target, path), "move back", path)?;
        }
        Ok(())
    }

    /// Removes a file if it exists. A directory in its place is moved away instead.
    pub(crate) fn remove(&self, path: &Path) -> Result<()> {
        match if_exists(std::fs::remove_file(path), "remove", path) {
            Err(_) if path.is_dir() && !path.is_symlink() => move_away(self.root(), path).map(drop),
            removed => removed.map(drop),
        }
    }

    fn is_verified(&self, digest: BlobDigest) -> bool {
        locked(&self.inner.verified).contains(&digest)
    }

    pub(crate) fn set_verified(&self, digest: BlobDigest) {
        locked(&self.inner.verified).insert(digest);
    }

    pub(crate) fn forget_verified(&self, digest: BlobDigest) {
        locked(&self.inner.verified).remove(&digest);
    }
}
