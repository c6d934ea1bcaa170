//! The summary of a run.

use crate::event::{RunStatus, StageStatus};
use crate::exit;
use runner_pipeline::Pipeline;

/// The summary of a run.
#[derive(Clone)]
pub struct Summary {
    /// The status of the run.
    pub status: RunStatus,
    /// True if the store or the machine failed.
    pub machine_failed: bool,
    /// The duration, in seconds.
    pub seconds: f64,
    /// The status of each stage, in order.
    pub stages: Vec<(String, StageStatus)>,
    /// The pipeline with the stages that were added to the run, if any were.
    pub grown: Option<Pipeline>,
}

impl Summary {
    /// The number of stages with this status.
    pub fn count(&self, status: StageStatus) -> usize {
        self.stages.iter().filter(|(_, found)| *found == status).count()
    }

    /// The exit code of the run, one of [`crate::exit`].
    pub fn exit_code(&self) -> u8 {
        match self.status {
            RunStatus::Done => exit::DONE,
            RunStatus::Interrupted => exit::INTERRUPTED,
            _ if self.machine_failed => exit::MACHINE_FAILED,
            _ => exit::STAGE_FAILED,
        }
    }
}
