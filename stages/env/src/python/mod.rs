//! Environments that a user's Python steps, in worker processes: any Gymnasium id, or a function that returns
//! a `gymnasium.Env`.
//!
//! The stage asks an interpreter for the spaces and stores them, with the text of the project's modules, in
//! an artifact that names no place of this machine. Opening it starts processes, each of which has a
//! contiguous range of the environments. Actions, observations, rewards and flags lie in shared memory; a
//! byte over a socket begins a step and another one ends it.
//!
//! Every episode begins with `reset(seed=…)` of a seed that depends on (seed, environment, episode) alone. A
//! saved state is therefore the actions of each episode so far: they are replayed, and the observation must
//! come out the same.
//!
//! The means to run a user's Python are public: the project's sources and the interpreter
//! ([`Project`], [`remember`], [`recall`]), a worker process ([`Worker`], [`Process`]) and the memory that it
//! shares with the engine ([`SharedMemory`]).

mod arrays;
mod artifact;
mod bench;
mod config;
mod env;
mod interpreter;
mod process;
mod saved;
mod shared;
mod stage;

pub(crate) use artifact::FAMILY;
pub use artifact::{PROJECT, Versions, extract, write};
pub use bench::{PythonBenchRow, bench};
pub use config::PythonConfig;
pub(crate) use env::open;
pub use interpreter::{Project, interpreter, is_call, program, project_files, recall, remember};
pub use process::{Launch, Process, Worker};
pub use shared::{Layout, SharedMemory};
pub use stage::{Python, build};

/// The worker processes of environments.
const WORKER: Worker = Worker {
    program: include_str!("worker.py"),
    subject: "an environment",
    limit_hint: "`time_limit:` of its stage is the limit of a step, and of the start",
};
