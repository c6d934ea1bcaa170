//! The manifest of an artifact.
#![no_main]

#[path = "../bodies/manifest.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::check(bytes));
