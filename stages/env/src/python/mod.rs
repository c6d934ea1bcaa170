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
pub use bench::{PythonBenchRow, bench};
pub use config::PythonConfig;
pub(crate) use env::open;
pub use stage::{Python, build};

/// The program of the worker processes.
const WORKER: &str = include_str!("worker.py");
