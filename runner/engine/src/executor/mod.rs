//! How an action is run: in this process, or in a worker process of its own.

mod child_wait;
mod command;
mod in_process;
mod input_links;
mod job;
mod memory;
mod outputs;
mod protocol;
mod reaper;
mod secrets;
mod worker;
mod worker_process;
mod workspace_pool;

pub use in_process::InProcess;
pub use job::{Done, Job, JobWork};
pub use memory::{machine_memory, peak_memory};
pub use reaper::reaper;
pub use worker::worker;
pub use worker_process::WorkerProcess;

use stages_core::{CancelToken, EventSink, StageError};
use std::sync::Arc;
use std::time::Duration;

/// Runs actions.
pub trait Executor: Send + Sync {
    /// Runs one to its end. Blocks.
    ///
    /// # Errors
    /// When it fails, was asked to stop, or takes longer than its time limit.
    fn run(&self, job: &Job, events: &Arc<dyn EventSink>, limits: &Limits) -> Result<Done, StageError>;
}

/// When an action has to end.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Asks it to stop: it may finish a checkpoint.
    pub cancel: CancelToken,
    /// Ends it at once.
    pub kill: CancelToken,
    /// When to give up.
    pub timeout: Option<Duration>,
    /// How long it may take to stop once it was asked.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            cancel: CancelToken::default(),
            kill: CancelToken::default(),
            timeout: None,
            grace: Duration::from_secs(10),
        }
    }
}

/// The failure of an action that took too long.
fn timed_out(limit: Duration) -> StageError {
    StageError::new(format!(
        "took longer than its time limit of {}",
        crate::text::duration(limit.as_secs_f64())
    ))
    .hint("raise `timeout:` of the stage")
}
