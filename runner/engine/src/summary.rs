//! How a run went.

use crate::event::{RunStatus, StageStatus};
use crate::exit;
use cache::{ActionKey, Hit};

/// How a run went.
#[derive(Clone, Debug)]
pub struct Summary {
    /// How it ended.
    pub status: RunStatus,
    /// Whether what failed was the store or the machine.
    pub machine_failed: bool,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// How each stage ended, in order.
    pub stages: Vec<(String, StageStatus)>,
    /// The results of those that are cached or ran.
    pub hits: Vec<(ActionKey, Hit)>,
}

impl Summary {
    /// How many stages ended so.
    pub fn count(&self, status: StageStatus) -> usize {
        self.stages.iter().filter(|(_, found)| *found == status).count()
    }

    /// The exit code that says so, one of [`crate::exit`].
    pub fn exit_code(&self) -> u8 {
        match self.status {
            RunStatus::Done => exit::DONE,
            RunStatus::Interrupted => exit::INTERRUPTED,
            _ if self.machine_failed => exit::MACHINE_FAILED,
            _ => exit::STAGE_FAILED,
        }
    }
}
