//! Writing blobs of unknown length.

use crate::atomic_write::{TempFile, temp_file};
use crate::blob::{BlobRef, CHUNK, digest, update};
use crate::error::{Error, Result};
use crate::store::Store;
use std::io::{self, Write};

/// Writes a blob of unknown length. The blob is in the store when [`BlobWriter::finish`] returns; a writer
/// that is dropped earlier leaves no file.
pub struct BlobWriter {
    store: Store,
    file: TempFile,
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
            let (file, hasher) = (&mut self.file, &mut self.hasher);
            rayon::join(|| file.append(bytes), || update(hasher, bytes)).0?;
        } else {
            self.buffer.extend_from_slice(bytes);
        }
        self.size += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.append(&self.buffer)?;
        update(&mut self.hasher, &self.buffer);
        self.buffer.clear();
        Ok(())
    }
}

impl Store {
    /// Starts writing a blob of unknown length.
    pub fn writer(&self) -> Result<BlobWriter> {
        Ok(BlobWriter {
            store: self.clone(),
            file: temp_file(self.root())?,
            hasher: blake3::Hasher::new(),
            size: 0,
            buffer: Vec::new(),
        })
    }
}

impl BlobWriter {
    /// Renames the blob to its final path and returns its digest.
    pub fn finish(mut self) -> Result<BlobRef> {
        self.flush().map_err(Error::io("write", self.file.path()))?;
        let blob = BlobRef::new(digest(&self.hasher), self.size);
        self.store.persist_blob(self.file, blob)?;
        Ok(blob)
    }

    /// Writes all of `bytes`; an error names the store's file.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_all(bytes).map_err(Error::io("write", self.file.path()))
    }
}
