//! A program in Python as a policy: a worker process that is given batches of observations in shared memory.
//!
//! The artifact has the project's modules (`project/…`) and the files that they load (`weights/…`). They are
//! executed when the policy is started, never when it is read, with the versions of the interpreter and of
//! the packages that the policy was made with, or not at all.

mod form;
mod player;

pub use form::{Per, PythonForm, Trust, files_of};

use stages_env::python::Worker;

/// The directory of the files that a policy loads, in its artifact.
pub const WEIGHTS: &str = "weights";

/// The worker processes of policies.
const WORKER: Worker = Worker {
    program: include_str!("worker.py"),
    subject: "a policy",
    limit_hint: "`time_limit:` of its stage is the limit of a batch of decisions, and of the start",
};
