//! Jobs on Slurm.

use crate::Launch;
use crate::settings::Slurm;
use runner_engine::Failure;
use runner_engine::executor::Executor;

/// Starts the executor.
///
/// # Errors
/// If Slurm's commands are missing or do not answer.
pub fn start(settings: &Slurm, launch: Launch) -> Result<Box<dyn Executor>, Failure> {
    let _ = (settings, launch);
    Err(Failure::usage("this build has no executor for Slurm"))
}
