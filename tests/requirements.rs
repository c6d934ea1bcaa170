//! Tests that need what a machine may lack: market data, a server, a tracer. Where a requirement is missing
//! the test is listed as ignored, by its name and with the requirement in brackets; asked for all the same
//! (`-- --ignored`), it fails.
//!
//! A test target with `harness = false` includes this file by its path.

#![allow(dead_code, reason = "each test target uses some of it")]

use libtest_mimic::{Arguments, Trial};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A test that runs where nothing is `missing`.
pub(crate) fn trial(name: &str, missing: Option<&str>, test: impl FnOnce() + Send + 'static) -> Trial {
    let body = move || {
        test();
        Ok(())
    };
    Trial::test(name, body)
        .with_kind(missing.unwrap_or_default())
        .with_ignored_flag(missing.is_some())
}

/// Runs the tests that the command line selects.
pub(crate) fn run(trials: Vec<Trial>) -> ExitCode {
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// The name of a test, and the test, which is given the directory of market data.
pub(crate) type MarketDataTest = (&'static str, fn(&Path));

/// Tests that are given the directory `data` of `RUNNER_TEST_DATA`.
pub(crate) fn with_market_data(tests: &[MarketDataTest]) -> Vec<Trial> {
    let data = std::env::var_os("RUNNER_TEST_DATA").map(|folder| PathBuf::from(folder).join("data"));
    let missing = data.is_none().then_some("RUNNER_TEST_DATA is unset");
    let with_data = |&(name, test): &MarketDataTest| {
        let data = data.clone();
        trial(name, missing, move || {
            test(&data.expect("RUNNER_TEST_DATA names the directory of test data"));
        })
    };
    tests.iter().map(with_data).collect()
}

/// Runs them.
pub(crate) fn run_with_market_data(tests: &[MarketDataTest]) -> ExitCode {
    run(with_market_data(tests))
}
