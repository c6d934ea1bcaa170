//! The record of an action or of a memo.
#![no_main]

#[path = "../bodies/record.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::check(bytes));
