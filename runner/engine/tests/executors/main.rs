//! The executors: worker processes, and programs in the sandbox, with and without isolation.
//!
//! This program is its own worker and its own sandbox, as `runner` is.

#![allow(clippy::unwrap_used, reason = "tests")]

/// Names tests by their functions.
macro_rules! tests {
    ($($test:ident,)*) => {
        pub(crate) const TESTS: &[crate::Test] = &[$((stringify!($test), $test)),*];
    };
}

#[path = "../lab/mod.rs"]
mod lab;
mod limits;
mod nodes;
mod outputs;
mod programs;
#[path = "../../../../tests/requirements.rs"]
mod requirements;
mod sandbox;
mod tools;
mod workers;

use lab::node::no_upstream;
use lab::{Lab, Ran, Setup};
use libtest_mimic::Trial;
use requirements::trial;
use runner_testkit::{PipelineText, pipeline};
use std::process::ExitCode;

/// The name of a test, and the test.
type Test = (&'static str, fn());

/// The tests of a module, which need nothing but a shell.
fn trials(module: &str, tests: &[Test]) -> Vec<Trial> {
    let named = |&(name, test): &Test| trial(&format!("{module}::{name}"), None, test);
    tests.iter().map(named).collect()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("worker") => return ExitCode::from(runner_engine::executor::worker(lab::kinds(), no_upstream)),
        Some("sandbox") => return ExitCode::from(runner_sandbox::sandbox()),
        _ => {}
    }
    let all = [
        trials("limits", limits::TESTS),
        trials("nodes", nodes::TESTS),
        trials("outputs", outputs::TESTS),
        trials("programs", programs::TESTS),
        trials("tools", tools::TESTS),
        trials("workers", workers::TESTS),
        sandbox::trials(),
    ];
    requirements::run(all.into_iter().flatten().collect())
}

/// A stage `a` with this command.
fn program(command: &str) -> PipelineText {
    pipeline("program").run("a", command)
}

/// The text of an output of a stage that succeeds.
fn output(lab: &Lab, text: impl std::fmt::Display, stage: &str) -> String {
    let ran = lab.run_with(text, Setup::default());
    assert_eq!(ran.summary.exit_code(), 0, "{}", ran.log);
    let outputs = ran.outputs(stage);
    lab.text(*outputs.values().next().unwrap())
}
