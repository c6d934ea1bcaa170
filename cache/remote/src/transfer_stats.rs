//! Counters of transfers.

use cache::TransferStats;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

type Watcher = Box<dyn Fn(TransferStats) + Send + Sync>;

/// The counters that [`TransferStats`] is read from.
#[derive(Default)]
pub(crate) struct Counters {
    fetched: AtomicU64,
    fetched_bytes: AtomicU64,
    uploaded: AtomicU64,
    uploaded_bytes: AtomicU64,
    moved_bytes: AtomicU64,
    watcher: OnceLock<Watcher>,
}

impl Counters {
    pub fn get(&self) -> TransferStats {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TransferStats {
            fetched: of(&self.fetched),
            fetched_bytes: of(&self.fetched_bytes),
            uploaded: of(&self.uploaded),
            uploaded_bytes: of(&self.uploaded_bytes),
            moved_bytes: of(&self.moved_bytes),
        }
    }

    /// Counts a transferred piece.
    pub fn moved(&self, bytes: usize) {
        self.moved_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        if let Some(watcher) = self.watcher.get() {
            watcher(self.get());
        }
    }

    /// Counts a fetched blob.
    pub fn fetched(&self, bytes: u64) {
        self.fetched.fetch_add(1, Ordering::Relaxed);
        self.fetched_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts an uploaded blob.
    pub fn uploaded(&self, bytes: u64) {
        self.uploaded.fetch_add(1, Ordering::Relaxed);
        self.uploaded_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds the counts of another process.
    pub fn add(&self, more: TransferStats) {
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

    /// Calls `watcher` after each transferred piece. Only the first one counts.
    pub fn watch(&self, watcher: Watcher) {
        let _ = self.watcher.set(watcher);
    }
}
