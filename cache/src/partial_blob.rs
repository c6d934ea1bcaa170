//! Blobs that arrive piece by piece, from an upstream.

use crate::atomic_write::{mark_unflushed, persist_open};
use crate::blob::{BlobRef, digest};
use crate::digest::BlobDigest;
use crate::error::{Error, Result};
use crate::file_lock::{Locked, acquire_open, try_acquire_open};
use crate::store::Store;
use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;
use std::time::Duration;

/// The longest wait for another process that is fetching the same blob.
const FETCH: Duration = Duration::from_secs(3600);

/// A blob whose bytes arrive piece by piece, and which may have no known digest before it is complete: a file
/// in `tmp`, which outlives an interrupted transfer, so that the next transfer resumes it. The file is locked
/// until this value is dropped.
///
/// The bytes are hashed on the calling thread alone: a thread that processed rayon tasks meanwhile could need
/// the same blob.
#[derive(Debug)]
pub struct PartialBlob {
    store: Store,
    /// The digest that the bytes must have.
    blob: Option<BlobDigest>,
    file: File,
    _lock: Locked,
    path: PathBuf,
    hasher: blake3::Hasher,
    len: u64,
}

impl Store {
    /// Opens the partial file of a blob, with the bytes that an earlier transfer left. Waits for another
    /// thread or process that has the file open.
    pub fn partial_blob(&self, blob: BlobDigest) -> Result<PartialBlob> {
        let path = self.folder("tmp").join(format!("fetch-{}", blob.to_hex()));
        let file = acquire_open(self, &path, FETCH)?;
        self.partial(Some(blob), file, path)
    }

    /// Opens the partial file of a file on a server: that of the blob if its digest is known, otherwise one
    /// identified by `name`, which denotes one version of the file. `None` while another thread or process
    /// has it open.
    pub fn partial_file(&self, blob: Option<BlobDigest>, name: &[u8]) -> Result<Option<PartialBlob>> {
        let name = blob.unwrap_or_else(|| BlobRef::of(name).blob);
        let path = self.folder("tmp").join(format!("fetch-{}", name.to_hex()));
        match try_acquire_open(self, &path)? {
            Some(file) => self.partial(blob, file, path).map(Some),
            None => Ok(None),
        }
    }

    fn partial(
        &self,
        blob: Option<BlobDigest>,
        (file, lock): (File, Locked),
        path: PathBuf,
    ) -> Result<PartialBlob> {
        mark_unflushed(self.root())?;
        let mut partial = PartialBlob {
            store: self.clone(),
            blob,
            file,
            _lock: lock,
            path,
            hasher: blake3::Hasher::new(),
            len: 0,
        };
        partial.hash_existing()?;
        Ok(partial)
    }
}

impl PartialBlob {
    fn hash_existing(&mut self) -> Result<()> {
        let mut buffer = vec![0; 256 << 10];
        loop {
            match self.file.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(n) => {
                    self.hasher.update(&buffer[..n]);
                    self.len += n as u64;
                }
                Err(err) if err.kind() == ErrorKind::Interrupted => {}
                Err(err) => return Err(Error::io("read", &self.path)(err)),
            }
        }
    }

    /// The number of bytes so far.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if there are no bytes yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends bytes.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(Error::io("write", &self.path))?;
        self.hasher.update(bytes);
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Drops all bytes.
    pub fn restart(&mut self) -> Result<()> {
        self.file
            .set_len(0)
            .and_then(|()| self.file.seek(SeekFrom::Start(0)))
            .map_err(Error::io("write", &self.path))?;
        self.hasher.reset();
        self.len = 0;
        Ok(())
    }

    /// The digest of the bytes received so far.
    pub fn digest(&self) -> BlobDigest {
        digest(&self.hasher)
    }

    /// True if the bytes match the blob's digest, or if no digest is known.
    pub fn is_intact(&self) -> bool {
        self.blob.is_none_or(|blob| blob == self.digest())
    }

    /// Renames the file to its final path if [`PartialBlob::is_intact`].
    ///
    /// # Errors
    /// [`Error::Damaged`] when the bytes do not match the digest, or when the file cannot be renamed.
    pub fn persist(self) -> Result<()> {
        let blob = self.digest();
        if let Some(expected) = self.blob.filter(|expected| *expected != blob) {
            return Err(Error::damaged("blob", expected));
        }
        let goal = self.store.blob_path(blob);
        persist_open(self.store.root(), &self.file, &self.path, &goal)?;
        self.store.set_verified(blob);
        Ok(())
    }

    /// Removes the file.
    pub fn discard(self) -> Result<()> {
        self.store.remove(&self.path)
    }

    /// Keeps the bytes received so far for the next transfer; `gc` drops them.
    pub fn suspend(self) -> Result<()> {
        if self.is_empty() { self.discard() } else { Ok(()) }
    }
}
