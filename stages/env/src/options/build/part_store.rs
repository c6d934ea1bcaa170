//! The store of built files, with a memo of the pieces of each part.

use bytes::Bytes;
use stages_core::StageError;

/// A piece of the tables that is computed part by part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The snapshots of a part, by its own quotes.
    Snapshots,
    /// The quote histories of a part's contracts, a file of the tables.
    Histories,
    /// The features by contract of the slots of a part's snapshots.
    ContractFeatures,
}

/// Stores files and memoises the pieces of parts.
pub trait PartStore: Sync {
    /// A handle to a stored file.
    type File: Clone + Send + Sync;

    /// The piece of a part, from the memo or from `compute`: it depends on the part's quotes and on `key`
    /// alone.
    ///
    /// # Errors
    /// When `compute` or the store fails.
    fn piece(
        &self,
        piece: Piece,
        part: usize,
        key: &[u8],
        compute: impl FnOnce() -> Result<Vec<u8>, StageError>,
    ) -> Result<Self::File, StageError>;

    /// Stores a file.
    ///
    /// # Errors
    /// When the store fails.
    fn file(&self, bytes: Vec<u8>) -> Result<Self::File, StageError>;

    /// The bytes of a file.
    ///
    /// # Errors
    /// When the file is missing or damaged.
    fn bytes(&self, file: &Self::File) -> Result<Bytes, StageError>;
}

/// Stores files in memory, without a memo.
pub struct InMemory;

impl PartStore for InMemory {
    type File = Bytes;

    fn piece(
        &self,
        _: Piece,
        _: usize,
        _: &[u8],
        compute: impl FnOnce() -> Result<Vec<u8>, StageError>,
    ) -> Result<Bytes, StageError> {
        compute().map(Bytes::from)
    }

    fn file(&self, bytes: Vec<u8>) -> Result<Bytes, StageError> {
        Ok(bytes.into())
    }

    fn bytes(&self, file: &Bytes) -> Result<Bytes, StageError> {
        Ok(file.clone())
    }
}
