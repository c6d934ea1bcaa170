//! The harness of integration tests: [`pipeline()`] builds the text of a pipeline, a [`Project`] is a
//! temporary directory in which the binary `runner` runs, and [`Ended`] is the outcome of a run of the
//! binary. [`Slurm`] is a real one, where it is installed.

#![allow(clippy::unwrap_used, reason = "tests")]

mod ended;
mod pipeline;
mod process;
mod project;
mod search;
mod slurm;

pub use ended::{Digests, Ended};
pub use pipeline::{PipelineText, pipeline};
pub use process::{marked, wait_for};
pub use project::{Project, files, runner, within};
pub use search::{SEARCH, write_search};
pub use slurm::{Slurm, missing_slurm};
