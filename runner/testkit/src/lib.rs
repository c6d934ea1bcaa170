//! The harness of integration tests: [`Project`]s in temporary directories, in which the binary `runner`
//! runs, and its outcome, [`Ended`].

#![allow(clippy::unwrap_used, reason = "tests")]

mod ended;
mod process;
mod project;

pub use ended::{Digests, Ended};
pub use process::{marked, wait_for};
pub use project::{Project, files, runner, within};
