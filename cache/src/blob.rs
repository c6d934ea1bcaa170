//! Blobs: bytes named by their digest.

use crate::digest::BlobDigest;
use crate::error::{Error, Result};
use crate::regular_file;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

/// The length in bytes from which hashing uses several threads.
const PARALLEL_LEN: usize = 256 << 10;
/// The length of one read or write in bytes.
pub(crate) const CHUNK: usize = 4 << 20;
/// The length in bytes of mapped memory that is hashed without a look at interrupts.
const PIECE: usize = 32 << 20;

/// A blob's digest and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BlobRef {
    /// The digest of the blob's bytes.
    pub blob: BlobDigest,
    /// The length of the blob in bytes.
    pub size: u64,
}

impl BlobRef {
    /// The blob of this digest and size.
    pub fn new(blob: BlobDigest, size: u64) -> Self {
        Self { blob, size }
    }

    /// Hashes bytes, and returns their digest and size. Nothing is stored.
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        update(&mut hasher, bytes);
        Self {
            blob: digest(&hasher),
            size: bytes.len() as u64,
        }
    }

    /// Hashes a file, which must not be written to meanwhile, and returns its digest and size.
    pub fn of_file(path: &Path) -> Result<Self> {
        Self::of_file_unless(path, &|| false)
    }

    /// Hashes a file as [`BlobRef::of_file`] does, but stops once `is_interrupted`, which is called before
    /// each chunk of a few MiB, returns true.
    ///
    /// # Errors
    /// When the file cannot be read, or [`Error::Interrupted`] when the work was interrupted.
    pub fn of_file_unless(path: &Path, is_interrupted: &dyn Fn() -> bool) -> Result<Self> {
        let mut file = regular_file::open(path).map_err(Error::io("read", path))?;
        hash_file(&mut file, path, true, is_interrupted)
    }

    /// Hashes mapped bytes, and returns their digest and size; `None` once `is_interrupted`, which is called
    /// between pieces, returns true.
    pub(crate) fn of_unless(bytes: &[u8], is_interrupted: &dyn Fn() -> bool) -> Option<Self> {
        let mut hasher = blake3::Hasher::new();
        for (i, piece) in bytes.chunks(PIECE).enumerate() {
            if i > 0 && is_interrupted() {
                return None;
            }
            update(&mut hasher, piece);
        }
        Some(Self {
            blob: digest(&hasher),
            size: bytes.len() as u64,
        })
    }
}

/// The bytes of a blob, memory-mapped and shared; page-aligned.
#[derive(Clone, Debug)]
pub struct Blob(Arc<memmap2::Mmap>);

impl Blob {
    /// Maps a file that is never written to again.
    pub(crate) fn map(file: &File) -> io::Result<Self> {
        #[expect(unsafe_code, reason = "a blob's file is never written to once it has its name")]
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

/// Hashes a file by reading it: unlike a memory map, reading survives a concurrent truncation. With
/// `parallel`, rayon's current pool is used, and the next chunk is read while the current one is hashed.
/// `is_interrupted` is called before each chunk.
pub(crate) fn hash_file(
    file: &mut File,
    path: &Path,
    parallel: bool,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<BlobRef> {
    let mut hasher = blake3::Hasher::new();
    let (mut chunk, mut next) = (buffer(file, path)?, Vec::new());
    let mut size = 0;
    let mut filled = fill(file, path, &mut chunk)?;
    while filled == chunk.len() {
        if is_interrupted() {
            return Err(Error::Interrupted { path: path.to_owned() });
        }
        next.resize(chunk.len(), 0);
        let ahead = if parallel {
            rayon::join(|| fill(file, path, &mut next), || update(&mut hasher, &chunk)).0
        } else {
            hasher.update(&chunk);
            fill(file, path, &mut next)
        };
        size += filled as u64;
        filled = ahead?;
        std::mem::swap(&mut chunk, &mut next);
    }
    let last = &chunk[..filled];
    if parallel {
        update(&mut hasher, last);
    } else {
        hasher.update(last);
    }
    Ok(BlobRef::new(digest(&hasher), size + filled as u64))
}

/// Allocates a buffer for a chunk of a file: one byte longer than the file, so that a small file needs only
/// one read.
fn buffer(file: &File, path: &Path) -> Result<Vec<u8>> {
    let len = file.metadata().map_err(Error::io("read", path))?.len();
    Ok(vec![0; usize::try_from(len + 1).unwrap_or(CHUNK).clamp(4096, CHUNK)])
}

/// Reads until the buffer is full or the file ends, and returns the number of bytes read.
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
