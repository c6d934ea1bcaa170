//! Named bytes somewhere else, one attempt at a time: no patience, no checks.

use bytes::Bytes;

/// What went wrong with an attempt.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// There is nothing of that name.
    Absent,
    /// Asking again would give the same: no permission, say.
    Refused(String),
    /// May go well the next time.
    Failed(String),
    /// This machine failed, not the remote.
    Local(crate::Error),
}

/// What an attempt gives.
pub(crate) type Attempt<T> = Result<T, Trouble>;

/// Takes what is read.
pub(crate) trait Sink {
    /// Where the bytes begin that follow, and how long the whole is. A place that cannot begin where it was asked to begins
    /// at 0.
    fn begin(&mut self, at: u64, total: u64) -> crate::Result<()>;

    /// The next bytes.
    fn take(&mut self, bytes: &[u8]) -> crate::Result<()>;
}

/// A part of an upload that has arrived.
pub(crate) struct Part(pub String);

/// Named bytes somewhere else. Names have `/` between their parts.
pub(crate) trait Place: Send + Sync {
    /// The length of what has this name.
    fn size(&self, name: &str) -> Attempt<u64>;

    /// Reads from `from` to the end.
    fn read(&self, name: &str, from: u64, sink: &mut dyn Sink) -> Attempt<()>;

    /// Gives these bytes their name, whole or not at all.
    fn write(&self, name: &str, bytes: Bytes) -> Attempt<()>;

    /// The names below a folder, up to so many.
    fn list(&self, folder: &str, most: usize) -> Attempt<Vec<String>>;

    /// In pieces of which length so many bytes are written; `None` where they are written in one go.
    fn part_size(&self, _len: usize) -> Option<usize> {
        None
    }

    /// Starts writing in parts.
    fn begin_parts(&self, name: &str) -> Attempt<String> {
        Err(Trouble::Refused(format!("`{name}` cannot be written in parts here")))
    }

    /// Writes a part.
    fn part(&self, name: &str, _id: &str, _index: usize, _bytes: Bytes) -> Attempt<Part> {
        Err(Trouble::Refused(format!("`{name}` cannot be written in parts here")))
    }

    /// Gives the parts their name.
    fn end_parts(&self, name: &str, _id: &str, _parts: &[Part]) -> Attempt<()> {
        Err(Trouble::Refused(format!("`{name}` cannot be written in parts here")))
    }

    /// Drops the parts that have arrived.
    fn drop_parts(&self, _name: &str, _id: &str) {}
}
