//! Fewer requests for memos that do not exist.

use crate::client::Client;
use cache::{MemoKey, Result};
use std::collections::HashSet;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of misses after which the remote's memos are listed once: most later look-ups are likely to
/// miss, too.
const MISSES: u32 = 32;

/// The maximum length of the list of names; fetching a longer list takes more time than single look-ups.
const NAMES: usize = 20_000;

/// The keys of all memos of a remote, listed after the first misses.
#[derive(Default)]
pub(crate) struct MemoFilter {
    misses: AtomicU32,
    names: OnceLock<Option<HashSet<MemoKey>>>,
}

impl MemoFilter {
    /// Counts a miss.
    pub(crate) fn missed(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }

    /// True if the remote may hold the memo.
    pub(crate) fn may_contain(&self, client: &Client, key: MemoKey) -> Result<bool> {
        // A request to a directory costs next to nothing.
        if !client.can_list()
            || client.is_directory()
            || self.misses.load(Ordering::Relaxed) < MISSES
            || !client.is_available()
        {
            return Ok(true);
        }
        if self.names.get().is_none() {
            let names = client.list("memos", NAMES)?.filter(|names| names.len() < NAMES);
            let names = names.map(|names| names.iter().filter_map(|name| name.parse().ok()).collect());
            let _ = self.names.set(names);
        }
        let names = self.names.get().and_then(Option::as_ref);
        Ok(names.is_none_or(|names| names.contains(&key)))
    }
}
