//! Files on servers that stages read, and their contents in the store.
//!
//! A file with a digest is its bytes, whatever a server says; one without is followed: a request says whether
//! the contents that were fetched last are still the server's.

use crate::blob::BlobRef;
use crate::digest::BlobDigest;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

/// A file on a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteFile {
    /// `https://…`, `http://…` or `s3://bucket/key`, without credentials.
    pub url: String,
    /// The digest of its bytes, for one that is not followed.
    pub pinned: Option<BlobDigest>,
}

/// The contents of a remote file, in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchedFile {
    /// The URL that was asked for.
    pub url: String,
    /// Their digest.
    pub blake3: BlobDigest,
    /// Their length in bytes.
    pub size: u64,
    /// The server's `ETag`, as it stands in the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// The server's `Last-Modified`, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

impl FetchedFile {
    /// The blob.
    pub fn blob(&self) -> BlobRef {
        BlobRef {
            blob: self.blake3,
            size: self.size,
        }
    }
}

/// The answer of a server about a file, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The contents that the store has are still the file's.
    Current(FetchedFile),
    /// The file is to be fetched: its length in bytes, where the server tells.
    ToFetch(Option<u64>),
}

/// Takes the progress of a transfer: bytes so far, and all bytes where they are known.
pub type OnBytes<'a> = &'a (dyn Fn(u64, Option<u64>) + Sync);
