//! Executors of other machines: the jobs of a run on Slurm and on Ray.
//!
//! Neither is scheduled, watched or spoken to by a protocol of our own: an engine that exists is asked to run
//! `runner worker`, and results travel through the store.
//!
//! | module | contents |
//! | --- | --- |
//! | [`settings`] | the block `executors:` of `config.yaml` |
//! | [`end`], [`retry`] | the ends of a job, and what follows from each |
//! | [`slurm`] | jobs as arrays of `sbatch`, their states by `squeue` and `sacct` |
//! | [`ray`] | jobs as tasks of Ray, by a driver in Python |

pub mod end;
pub mod ray;
pub mod retry;
pub mod settings;
pub mod slurm;

use cache::Store;
use runner_engine::Failure;
use runner_engine::executor::Executor;
use settings::Settings;
use std::path::PathBuf;

/// The arguments with which an executor of a run is started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The executor's name in `config.yaml`.
    pub name: String,
    /// The pipeline's name.
    pub pipeline: String,
    /// The store of the run.
    pub store: Store,
    /// The path of this program.
    pub program: PathBuf,
}

/// Starts an executor.
///
/// # Errors
/// If the engine is not installed or does not answer, or its settings do not fit the home.
pub fn start(settings: &Settings, launch: Launch) -> Result<Box<dyn Executor>, Failure> {
    match settings {
        Settings::Slurm(settings) => slurm::start(settings, launch),
        Settings::Ray(settings) => ray::start(settings, launch),
    }
}
