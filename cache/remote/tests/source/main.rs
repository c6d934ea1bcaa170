//! Files of servers, fetched into a store: followed and pinned, resumed, verified, refused.

#![allow(clippy::unwrap_used, reason = "tests")]

mod followed;
mod hostile;
mod pinned;
mod s3;
mod server;

use cache::{BlobDigest, BlobRef, Error, FetchFiles as _, FetchedFile, RemoteFile, Store};
use cache_remote::{SourceFiles, Timing};
use std::time::Duration;

/// A store of a directory of its own.
struct Home {
    dir: tempfile::TempDir,
    store: Store,
}

impl Home {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        Self { dir, store }
    }

    /// Fails unless a blob has these bytes, without printing them.
    fn assert_has(&self, blob: BlobDigest, bytes: &[u8]) {
        assert!(*self.store.blob(blob).unwrap() == *bytes, "other bytes");
    }

    /// The number of partial files.
    fn partial(&self) -> usize {
        std::fs::read_dir(self.dir.path().join("tmp")).unwrap().count()
    }
}

/// Limits under which no test waits for long.
fn quick() -> Timing {
    Timing {
        stall: Duration::from_millis(500),
        backoff: Duration::from_millis(1),
        retries: 3,
    }
}

fn file(url: impl Into<String>, pinned: Option<&[u8]>) -> RemoteFile {
    RemoteFile {
        url: url.into(),
        pinned: pinned.map(|bytes| BlobRef::of(bytes).blob),
    }
}

/// Fetches as a new process does.
fn fetch(store: &Store, file: &RemoteFile) -> Result<FetchedFile, Error> {
    SourceFiles::new(false, quick(), []).fetch(store, file, &|_, _| {})
}

/// The reason and the hint of a failure.
fn refused(fetched: Result<FetchedFile, Error>) -> (String, String) {
    match fetched {
        Err(Error::File { reason, hint, .. }) => (reason, hint),
        other => panic!("{other:?}"),
    }
}

/// Bytes that differ from place to place.
fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
}
