//! The pipeline file.
#![no_main]

#[path = "../bodies/pipeline.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::check(bytes));
