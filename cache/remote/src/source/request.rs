//! Requests for a file on a server, and their answers.

use crate::failure::Attempt;
use bytes::Bytes;
use cache::FetchedFile;
use futures_util::stream::BoxStream;

/// A request for a file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ask<'a> {
    /// The contents in the store: no body is sent if they are current.
    pub known: Option<&'a FetchedFile>,
    /// The offset of the first requested byte.
    pub from: u64,
    /// The strong ETag of the version to which the bytes before `from` belong.
    pub version: Option<&'a str>,
}

/// An answer.
pub(super) enum Reply<'a> {
    /// The contents in the store are current.
    NotModified,
    /// The bytes of the file.
    Body(Body<'a>),
}

/// The bytes of a file, from `offset` on.
pub(super) struct Body<'a> {
    pub offset: u64,
    /// The length of the whole file.
    pub total: Option<u64>,
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    pub bytes: BoxStream<'a, Attempt<Bytes>>,
}

impl Body<'_> {
    /// The ETag, if it identifies identical bytes: a weak ETag does not.
    pub(super) fn strong_etag(&self) -> Option<&str> {
        self.etag.as_deref().filter(|etag| etag.starts_with('"'))
    }
}
