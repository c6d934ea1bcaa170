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
mod job_file;
mod job_stream;
mod limits;
mod log;
mod node;
mod outputs;
mod probe;
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
pub use job::{
    Done, Elsewhere, Executor, Job, JobStore, JobWork, Place, Program, Request, RunPart, node_dir,
};
pub use job_file::{beside, job_file_name, run_batch, run_job_file};
pub use job_stream::run_job_stream;
pub use limits::Limits;
pub use probe::{Machine, clock, probe};
pub use protocol::{Message, STOP};
pub(crate) use python::DRIVER_VERSION;
pub(crate) use run_job::inputs;
pub use worker::worker;
pub use worker_process::WorkerProcess;
