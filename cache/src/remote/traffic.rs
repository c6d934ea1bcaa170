//! What goes over the wire, counted.

use super::client::Remote;
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// What went over the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Blobs fetched.
    pub fetched: u64,
    /// Their bytes.
    pub fetched_bytes: u64,
    /// Blobs uploaded.
    pub uploaded: u64,
    /// Their bytes.
    pub uploaded_bytes: u64,
    /// Bytes so far, those of transfers that go on included.
    pub moved_bytes: u64,
}

type Watcher = Box<dyn Fn(Traffic) + Send + Sync>;

/// Counts it.
#[derive(Default)]
pub(super) struct Counters {
    fetched: AtomicU64,
    fetched_bytes: AtomicU64,
    uploaded: AtomicU64,
    uploaded_bytes: AtomicU64,
    moved_bytes: AtomicU64,
    watcher: OnceLock<Watcher>,
}

impl Counters {
    pub fn get(&self) -> Traffic {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Traffic {
            fetched: of(&self.fetched),
            fetched_bytes: of(&self.fetched_bytes),
            uploaded: of(&self.uploaded),
            uploaded_bytes: of(&self.uploaded_bytes),
            moved_bytes: of(&self.moved_bytes),
        }
    }

    pub fn moved(&self, bytes: usize) {
        self.moved_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        if let Some(watcher) = self.watcher.get() {
            watcher(self.get());
        }
    }

    pub fn fetched(&self, bytes: u64) {
        self.fetched.fetch_add(1, Ordering::Relaxed);
        self.fetched_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn uploaded(&self, bytes: u64) {
        self.uploaded.fetch_add(1, Ordering::Relaxed);
        self.uploaded_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn add(&self, more: Traffic) {
        for (counter, more) in [
            (&self.fetched, more.fetched),
            (&self.fetched_bytes, more.fetched_bytes),
            (&self.uploaded, more.uploaded),
            (&self.uploaded_bytes, more.uploaded_bytes),
            (&self.moved_bytes, more.moved_bytes),
        ] {
            counter.fetch_add(more, Ordering::Relaxed);
        }
    }
}

impl Remote {
    /// What went over the wire so far.
    pub fn traffic(&self) -> Traffic {
        self.inner.traffic.get()
    }

    /// Calls `watcher` whenever something has gone over the wire, from the thread that waited for it. The first one counts.
    pub fn watch(&self, watcher: impl Fn(Traffic) + Send + Sync + 'static) {
        let _ = self.inner.traffic.watcher.set(Box::new(watcher));
    }
}
