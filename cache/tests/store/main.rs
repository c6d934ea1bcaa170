//! The store's public interface.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod concurrent;
mod damage;
mod files;
mod formats;
mod gc;
mod home;
mod obstacles;
mod scrub;

use cache::Store;
use home::{Home, TAKEOVER, action_key, data, files, memo_key};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

impl Home {
    /// A store that several hosts share.
    pub(crate) fn shared() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_shared(&dir.path().join("home"), TAKEOVER).unwrap();
        Self { dir, store }
    }

    fn record_path(&self, folder: &str, hex: &str) -> PathBuf {
        self.store.root().join(folder).join(&hex[..2]).join(&hex[2..])
    }
}

fn age(path: &Path, by: Duration) {
    std::fs::File::open(path)
        .unwrap()
        .set_modified(SystemTime::now() - by)
        .unwrap();
}
