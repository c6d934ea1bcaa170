//! Files on servers that stages read, and their contents in the store.
//!
//! A pinned file, whose digest is given, is defined by its bytes, whatever a server says. A file without a
//! digest is followed: a request tells whether the contents fetched last are still the server's.

use crate::blob::BlobRef;
use crate::digest::BlobDigest;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

/// A file on a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteFile {
    /// The URL, `https://…`, `http://…` or `s3://bucket/key`, without credentials.
    pub url: String,
    /// The digest of the file's bytes, if the file is pinned.
    pub pinned: Option<BlobDigest>,
}

/// The contents of a remote file, in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchedFile {
    /// The URL that was requested.
    pub url: String,
    /// The digest of the contents.
    pub blake3: BlobDigest,
    /// The length of the contents in bytes.
    pub size: u64,
    /// The server's `ETag`, verbatim from the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// The server's `Last-Modified`, verbatim from the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

impl FetchedFile {
    /// The blob that holds the contents.
    pub fn blob(&self) -> BlobRef {
        BlobRef::new(self.blake3, self.size)
    }
}

/// The answer of a server about a file, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The contents in the store are still the file's.
    Current(FetchedFile),
    /// The file must be fetched: its length in bytes, if the server reports it.
    ToFetch(Option<u64>),
}

/// Receives the progress of a transfer: the bytes so far, and the total bytes if known.
pub type OnBytes<'a> = &'a (dyn Fn(u64, Option<u64>) + Sync);
