//! Proof search: the state is a conjunction of goals with variables, an action applies a clause to the
//! selected goal, and an episode ends with the proof or is given up.
//!
//! [`ProofTask`] holds what does not change, [`Engine`] makes the successors of a state, [`ProofEnvs`] steps
//! a range of environments.

mod config;
mod counts;
mod env;
mod expand;
mod observe;
mod search;
mod state;
mod task;
#[cfg(test)]
mod tests;

pub use super::batch::Order;
pub use config::{ActionForm, GoalSelection, ProofConfig, ProofPreset, ProofReward, TrainingQueries};
pub use counts::{FinishedProof, ProofCounts};
pub use env::{ProofEnvs, ProofEpisode};
pub use expand::Engine;
pub use search::{ProofNode, ProofTree, shortest};
pub use state::{Goals, Successors};
pub use task::{ProofTask, Query};
