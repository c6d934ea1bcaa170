//! Named objects behind a URL: single requests.

use bytes::Bytes;

/// The failure of a request.
#[derive(Debug)]
pub(crate) enum Fault {
    /// No object of that name.
    NotFound,
    /// A retry would fail the same way: no permission, for example.
    Permanent(String),
    /// A retry may succeed.
    Transient(String),
    /// The local store failed, not the remote.
    Local(cache::Error),
}

/// The result of a request.
pub(crate) type Attempt<T> = Result<T, Fault>;

/// Takes the bytes of an object.
pub(crate) trait Sink {
    /// The offset of the bytes that follow, and the object's length. A backend that cannot start at the requested offset
    /// starts at 0.
    fn begin(&mut self, offset: u64, total: u64) -> cache::Result<()>;

    /// The next bytes.
    fn take(&mut self, bytes: &[u8]) -> cache::Result<()>;
}

/// The id of an uploaded part.
pub(crate) struct Part(pub String);

/// Named objects. Names have `/` between their parts.
pub(crate) trait Backend: Send + Sync {
    /// The length of an object in bytes.
    fn size(&self, name: &str) -> Attempt<u64>;

    /// Reads an object from `offset` to its end.
    fn read(&self, name: &str, offset: u64, sink: &mut dyn Sink) -> Attempt<()>;

    /// Writes an object atomically.
    fn write(&self, name: &str, bytes: Bytes) -> Attempt<()>;

    /// At most so many names below a folder.
    fn list(&self, folder: &str, limit: usize) -> Attempt<Vec<String>>;

    /// The part size of a multipart upload of `len` bytes; `None` where it is written in one request.
    fn part_size(&self, _len: usize) -> Option<usize> {
        None
    }

    /// Starts a multipart upload.
    fn begin_parts(&self, name: &str) -> Attempt<String> {
        Err(Fault::Permanent(format!("`{name}` cannot be written in parts here")))
    }

    /// Uploads a part.
    fn part(&self, name: &str, _id: &str, _index: usize, _bytes: Bytes) -> Attempt<Part> {
        Err(Fault::Permanent(format!("`{name}` cannot be written in parts here")))
    }

    /// Completes a multipart upload.
    fn end_parts(&self, name: &str, _id: &str, _parts: &[Part]) -> Attempt<()> {
        Err(Fault::Permanent(format!("`{name}` cannot be written in parts here")))
    }

    /// Aborts a multipart upload.
    fn drop_parts(&self, _name: &str, _id: &str) {}
}
