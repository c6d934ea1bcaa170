//! The scheduler and the planner, on stages that start no process: what runs, in which order, and why.

#![allow(clippy::unwrap_used, reason = "tests")]

mod determinism;
mod elsewhere;
mod failures;
mod growing;
mod healing;
mod hits;
#[path = "../lab/mod.rs"]
mod lab;
mod order;
mod planning;
mod runs;
mod shared;
mod sources;
mod stops;

use lab::{Lab, Setup};
use runner_testkit::{PipelineText, pipeline};

/// Three stages in a row, of which the first reads a file.
fn chain() -> PipelineText {
    pipeline("chain")
        .param("word", "hello")
        .run("a", "echo <seed.txt > ${outputs.x}")
        .set("files", "[seed.txt]")
        .run("b", "count ${needs.x} > ${outputs.x}")
        .needs("x", "a")
        .run("c", "echo ${params.word} ${needs.x} > ${outputs.x}")
        .needs("x", "b")
}

/// A lab with the file of [`chain`].
fn chain_lab() -> Lab {
    let lab = Lab::new();
    lab.write("seed.txt", "one two");
    lab
}
