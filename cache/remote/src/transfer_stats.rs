//! Counters of transfers.

use cache::TransferStats;
use cache::parallel::locked;
use std::sync::{Mutex, OnceLock};

type Watcher = Box<dyn Fn(TransferStats) + Send + Sync>;

/// Counters of the transfers so far.
#[derive(Default)]
pub(crate) struct Counters {
    stats: Mutex<TransferStats>,
    watcher: OnceLock<Watcher>,
}

impl Counters {
    pub(crate) fn get(&self) -> TransferStats {
        *locked(&self.stats)
    }

    /// Counts a transferred piece.
    pub(crate) fn moved(&self, bytes: usize) {
        locked(&self.stats).moved_bytes += bytes as u64;
        if let Some(watcher) = self.watcher.get() {
            watcher(self.get());
        }
    }

    /// Counts a fetched blob.
    pub(crate) fn fetched(&self, bytes: u64) {
        let mut stats = locked(&self.stats);
        stats.fetched += 1;
        stats.fetched_bytes += bytes;
    }

    /// Counts an uploaded blob.
    pub(crate) fn uploaded(&self, bytes: u64) {
        let mut stats = locked(&self.stats);
        stats.uploaded += 1;
        stats.uploaded_bytes += bytes;
    }

    /// Adds the counts of another process.
    pub(crate) fn add(&self, more: TransferStats) {
        let mut stats = locked(&self.stats);
        stats.fetched += more.fetched;
        stats.fetched_bytes += more.fetched_bytes;
        stats.uploaded += more.uploaded;
        stats.uploaded_bytes += more.uploaded_bytes;
        stats.moved_bytes += more.moved_bytes;
    }

    /// Calls `watcher` after each transferred piece. Only the first watcher is used.
    pub(crate) fn watch(&self, watcher: Watcher) {
        let _ = self.watcher.set(watcher);
    }
}
