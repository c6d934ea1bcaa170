//! The executor of actions: a worker process for each stage kind, and the sandbox for programs.

mod command;
mod command_run;
mod container;
mod failure;
mod files;
mod input_files;
mod invisible;
mod isolation;
mod job;
mod limits;
mod log;
mod outputs;
mod program;
mod protocol;
mod python;
mod python_parts;
mod run_job;
mod secrets;
mod stage_dir;
mod tools;
mod undeclared;
mod watch;
mod worker;
mod worker_process;

pub(crate) use command::NAMESPACES;
pub use job::{Done, Executor, Job, JobWork, Program};
pub use limits::Limits;
pub(crate) use python::DRIVER_VERSION;
pub(crate) use run_job::inputs;
pub use worker::worker;
pub use worker_process::WorkerProcess;
