//! Named objects at a URL.

use crate::failure::Attempt;
use bytes::Bytes;

/// Receives the bytes of an object.
pub(crate) trait Sink {
    /// Announces the offset of the bytes that follow, and the object's length, both in bytes. A backend that
    /// cannot start at the requested offset starts at 0.
    fn begin(&mut self, offset: u64, total: u64) -> cache::Result<()>;

    /// Receives the next bytes. Returns false when no more are needed: the backend then stops reading, which
    /// is not a fault.
    fn take(&mut self, bytes: &[u8]) -> cache::Result<bool>;
}

/// Named objects. Names have `/` between their parts.
pub(crate) trait Backend: Send + Sync {
    /// The length of an object in bytes.
    fn size(&self, name: &str) -> Attempt<u64>;

    /// Reads an object from `offset` to its end.
    fn read(&self, name: &str, offset: u64, sink: &mut dyn Sink) -> Attempt<()>;

    /// Writes an object atomically. Calls `on_part` with the length of each part that has arrived; when it
    /// returns false, the write is abandoned ([`Stopped`](crate::failure::Failure::Stopped)).
    fn write(&self, name: &str, bytes: Bytes, on_part: &dyn Fn(usize) -> bool) -> Attempt<()>;

    /// Lists at most `limit` names below a directory.
    fn list(&self, folder: &str, limit: usize) -> Attempt<Vec<String>>;
}
