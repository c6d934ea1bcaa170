//! Executors of actions: in this process, or in a worker process for each action.

mod child_wait;
mod command;
mod files;
mod in_process;
mod input_links;
mod job;
mod limits;
mod memory;
mod outputs;
mod protocol;
mod reaper;
mod run_job;
mod secrets;
mod worker;
mod worker_process;

pub use in_process::InProcess;
pub use job::{Done, Executor, Job, JobWork};
pub use limits::Limits;
pub use memory::{machine_memory, peak_memory};
pub use reaper::reaper;
pub use worker::worker;
pub use worker_process::WorkerProcess;
