//! The harness of integration tests: [`pipeline()`] builds the text of a pipeline, a [`Project`] is a
//! temporary directory in which the binary `runner` runs, and [`Ended`] is the outcome of a run of the
//! binary. [`Slurm`] and [`Ray`] are real ones, where they are installed.

#![allow(clippy::unwrap_used, reason = "tests")]

mod ended;
mod pipeline;
mod process;
mod project;
mod ray;
mod search;
mod slurm;

pub use ended::{Digests, Ended};
pub use pipeline::{PipelineText, pipeline};
pub use process::{marked, wait_for};
pub use project::{Project, files, runner, within};
pub use ray::{Ray, missing_ray, ray_python};
pub use search::{SEARCH, write_search};
pub use slurm::{Slurm, missing_slurm};
