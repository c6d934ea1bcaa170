//! Blobs: bytes under the name of their digest.

use crate::{BlobDigest, Error, Result, Store, publish};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

/// From this length on, hashing over several threads pays.
const PARALLEL_LEN: usize = 256 << 10;
/// How much is read or written at a time.
const CHUNK: usize = 4 << 20;

/// A blob's name and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BlobRef {
    /// The digest of its bytes.
    pub blob: BlobDigest,
    /// Its length in bytes.
    pub size: u64,
}

impl BlobRef {
    /// The name and size that these bytes have as a blob. Nothing is stored.
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        update(&mut hasher, bytes);
        Self {
            blob: digest(&hasher),
            size: bytes.len() as u64,
        }
    }

    /// The name and size of a file's bytes, read as they are: for files that nobody else writes to.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of_file(path: &Path) -> Result<Self> {
        let mut file = File::open(path).map_err(Error::io("read", path))?;
        hash_file(&mut file, path, true)
    }
}

/// A blob's bytes, memory-mapped and shared; page-aligned.
#[derive(Clone, Debug)]
pub struct Blob(Arc<memmap2::Mmap>);

impl Blob {
    /// Maps a file that is never written again.
    pub(crate) fn map(file: &File) -> io::Result<Self> {
        #[expect(unsafe_code, reason = "blobs are never written again once they have their name")]
        // SAFETY: the mapping is read-only and the file is immutable by the store's protocol.
        let map = unsafe { memmap2::Mmap::map(file) }?;
        Ok(Self(Arc::new(map)))
    }
}

impl Deref for Blob {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Blob {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Writes a blob of unknown length; it appears in the store when [`BlobWriter::finish`] returns, and leaves nothing
/// behind when it is dropped before.
pub struct BlobWriter {
    store: Store,
    file: tempfile::NamedTempFile,
    hasher: blake3::Hasher,
    size: u64,
    buffer: Vec<u8>,
}

impl Write for BlobWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() + bytes.len() > CHUNK {
            self.flush()?;
        }
        if bytes.len() >= CHUNK {
            let (file, hasher) = (self.file.as_file_mut(), &mut self.hasher);
            rayon::join(|| file.write_all(bytes), || update(hasher, bytes)).0?;
        } else {
            self.buffer.extend_from_slice(bytes);
        }
        self.size += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.buffer)?;
        update(&mut self.hasher, &self.buffer);
        self.buffer.clear();
        Ok(())
    }
}

impl BlobWriter {
    pub(crate) fn new(store: &Store) -> Result<Self> {
        Ok(Self {
            store: store.clone(),
            file: publish::temporary(store.root())?,
            hasher: blake3::Hasher::new(),
            size: 0,
            buffer: Vec::new(),
        })
    }

    /// Puts the blob in place and returns its name.
    ///
    /// # Errors
    /// When the disk is full, or the file cannot be renamed into place.
    pub fn finish(mut self) -> Result<BlobRef> {
        self.flush().map_err(Error::io("write", self.file.path()))?;
        let blob = BlobRef {
            blob: digest(&self.hasher),
            size: self.size,
        };
        self.store.publish_blob(self.file, blob)?;
        Ok(blob)
    }

    /// Writes all of `bytes`, naming the store's file in the error.
    ///
    /// # Errors
    /// When the disk is full or the store cannot be written.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_all(bytes).map_err(Error::io("write", self.file.path()))
    }
}

/// Hashes a file by reading it, which unlike a mapping survives that somebody truncates it meanwhile. `parallel` uses
/// rayon's current pool, and reads the next piece while one is hashed.
pub(crate) fn hash_file(file: &mut File, path: &Path, parallel: bool) -> Result<BlobRef> {
    let mut hasher = blake3::Hasher::new();
    let (mut piece, mut next) = (buffer(file, path)?, Vec::new());
    let mut size = 0;
    let mut filled = fill(file, path, &mut piece)?;
    while filled == piece.len() {
        next.resize(piece.len(), 0);
        let ahead = if parallel {
            rayon::join(|| fill(file, path, &mut next), || update(&mut hasher, &piece)).0
        } else {
            hasher.update(&piece);
            fill(file, path, &mut next)
        };
        size += filled as u64;
        filled = ahead?;
        std::mem::swap(&mut piece, &mut next);
    }
    let last = &piece[..filled];
    if parallel {
        update(&mut hasher, last);
    } else {
        hasher.update(last);
    }
    Ok(BlobRef {
        blob: digest(&hasher),
        size: size + filled as u64,
    })
}

/// Hands a file over in large pieces and returns its length.
pub(crate) fn read_chunks(file: &mut File, path: &Path, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<u64> {
    let mut buffer = buffer(file, path)?;
    let mut size = 0;
    loop {
        let filled = fill(file, path, &mut buffer)?;
        take(&buffer[..filled])?;
        size += filled as u64;
        if filled < buffer.len() {
            return Ok(size);
        }
    }
}

/// Room for a piece of a file: one byte more than it has, so that a small one ends within one piece.
fn buffer(file: &File, path: &Path) -> Result<Vec<u8>> {
    let len = file.metadata().map_err(Error::io("read", path))?.len();
    Ok(vec![0; usize::try_from(len + 1).unwrap_or(CHUNK).clamp(4096, CHUNK)])
}

/// Reads until the buffer is full or the file ends, and returns how much.
fn fill(file: &mut File, path: &Path, buffer: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(err) if err.kind() == ErrorKind::Interrupted => {}
            Err(err) => return Err(Error::io("read", path)(err)),
        }
    }
    Ok(filled)
}

pub(crate) fn update(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    if bytes.len() >= PARALLEL_LEN {
        hasher.update_rayon(bytes);
    } else {
        hasher.update(bytes);
    }
}

pub(crate) fn digest(hasher: &blake3::Hasher) -> BlobDigest {
    BlobDigest::from_bytes(*hasher.finalize().as_bytes())
}
