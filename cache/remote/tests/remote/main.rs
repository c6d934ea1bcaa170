//! Stores with a remote as their upstream.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod directory;
mod forged;
#[path = "../../../tests/store/home.rs"]
mod home;
mod hostile;
mod http;
mod server;
mod signed;

use cache::Store;
use cache_remote::{PushReport, Remote, RemoteSettings};
use home::Home;

/// Settings that accept records without a signature.
fn unsigned(url: impl Into<String>) -> RemoteSettings {
    RemoteSettings {
        trust_unsigned: true,
        ..RemoteSettings::new(url)
    }
}

fn with_remote(store: Store, settings: RemoteSettings) -> Store {
    Remote::new(settings, &store).unwrap().attach(store)
}

/// Uploads everything in a store.
fn push(home: &Home, settings: RemoteSettings) -> PushReport {
    let store = home.reopen();
    let remote = Remote::new(settings, &store).unwrap();
    let records = store.records().unwrap();
    remote.push(&records, &Default::default(), |_| {}).unwrap()
}
