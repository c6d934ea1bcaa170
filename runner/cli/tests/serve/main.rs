//! `runner serve`, by the real program: over plain HTTP, and in a browser (Chromium by ChromeDriver,
//! `RUNNER_TEST_CHROMEDRIVER`), where there is one.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../../../../tests/requirements.rs"]
mod requirements;

mod access;
mod accessibility;
mod browser;
mod charts;
mod http;
mod in_browser;
mod large;
mod live;
mod many;
mod pages;
mod reports;

use requirements::trial;
use std::process::ExitCode;

/// A test by its name.
type Test = (&'static str, fn());

fn main() -> ExitCode {
    let plain: Vec<Test> = [access::TESTS, live::TESTS, pages::TESTS, many::TESTS].concat();
    let missing = browser::driver()
        .is_none()
        .then_some("RUNNER_TEST_CHROMEDRIVER is unset");
    let plain = plain.into_iter().map(|(name, test)| trial(name, None, test));
    let seen = [in_browser::TESTS, charts::TESTS, reports::TESTS, large::TESTS].concat();
    let seen = seen.into_iter().map(|(name, test)| trial(name, missing, test));
    let no_axe = missing.or_else(|| accessibility::axe().is_none().then_some("RUNNER_TEST_AXE is unset"));
    let judged = accessibility::TESTS
        .iter()
        .map(|(name, test)| trial(name, no_axe, *test));
    requirements::run(plain.chain(seen).chain(judged).collect())
}
