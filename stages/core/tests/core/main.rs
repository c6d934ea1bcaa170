//! The promises that every stage kind rests on: what is in a key, what a port, a memo and a table are, and
//! where an error points.

#![allow(clippy::unwrap_used, reason = "tests")]

mod config;
mod context;
mod dataset;
mod memo;
mod port;
mod schedule;
mod table;

use cache::{ActionKey, Store};
use stages_core::Context;

/// A context over an empty store, which is removed with the directory.
fn context() -> (tempfile::TempDir, Context) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    (home, Context::new(ActionKey::from_bytes([0; 32]), store))
}
