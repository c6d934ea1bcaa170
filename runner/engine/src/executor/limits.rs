//! Limits of an action: cancellation, kill and timeout.

use crate::text;
use stages_core::{CancelToken, StageError};
use std::time::{Duration, Instant};

/// The limits of an action.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Requests the action to stop; it may finish a checkpoint first.
    pub cancel: CancelToken,
    /// Kills the action immediately.
    pub kill: CancelToken,
    /// The action's time limit.
    pub timeout: Option<Duration>,
    /// The grace period between the request to stop and the kill.
    pub grace: Duration,
}

impl Limits {
    /// True if the action was cancelled or killed.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled() || self.kill.is_cancelled()
    }

    /// Returns an error if an action that began at `started` has to end.
    pub(super) fn stopped(&self, started: Instant) -> Result<(), StageError> {
        match self.timeout.filter(|limit| started.elapsed() > *limit) {
            Some(limit) => Err(timed_out(limit)),
            None if self.is_cancelled() => Err(StageError::interrupted()),
            None => Ok(()),
        }
    }
}

/// The error of an action that exceeded its time limit.
pub(super) fn timed_out(limit: Duration) -> StageError {
    StageError::new(format!(
        "took longer than its time limit of {}",
        text::duration(limit.as_secs_f64())
    ))
    .hint("raise `timeout:` of the stage")
}
