//! When an action has to end.

use crate::text;
use stages_core::{CancelToken, StageError};
use std::time::Duration;

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
pub(super) fn timed_out(limit: Duration) -> StageError {
    StageError::new(format!(
        "took longer than its time limit of {}",
        text::duration(limit.as_secs_f64())
    ))
    .hint("raise `timeout:` of the stage")
}
