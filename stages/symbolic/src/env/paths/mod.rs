//! Path finding on a knowledge graph: from (source, relation, ?) an agent walks edges and their inverses, and
//! is rewarded at the answer (Das et al., "Go for a walk and arrive at the answer", 2018).
//!
//! [`PathTask`] holds what does not change, [`PathState`] is a place on a path, [`PathEnvs`] steps a range of
//! environments.

mod config;
mod counts;
mod env;
mod graph;
mod observe;
mod soft_reward;
mod state;
mod task;
#[cfg(test)]
mod tests;

pub use super::batch::Order;
pub use super::proofs::TrainingQueries;
pub use config::{PathConfig, QuerySides};
pub use counts::PathCounts;
pub use env::PathEnvs;
pub use observe::observe;
pub use soft_reward::{SoftRewardConfig, embedding_score};
pub use state::PathState;
pub(crate) use task::inverse;
pub use task::{PathQuery, PathTask};
