//! Answers of a remote store.
#![no_main]

#[path = "../bodies/remote.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::check(bytes));
