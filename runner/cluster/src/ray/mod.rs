//! Jobs on Ray.

use crate::Launch;
use crate::settings::Ray;
use runner_engine::Failure;
use runner_engine::executor::Executor;

/// Starts the executor.
///
/// # Errors
/// If Ray is missing or does not answer.
pub fn start(settings: &Ray, launch: Launch) -> Result<Box<dyn Executor>, Failure> {
    let _ = (settings, launch);
    Err(Failure::usage("this build has no executor for Ray"))
}
