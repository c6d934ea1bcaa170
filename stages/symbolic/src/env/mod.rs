//! Symbolic environments: states are bags of atoms, actions as many as the state offers.
//!
//! The stage kind `env/symbolic` stores one ([`Symbolic`]), [`SymbolicTask`] opens it.

pub mod batch;
mod batched;
mod bench;
mod config;
pub(crate) mod counts;
pub mod embedding;
mod open;
pub mod paths;
pub mod proofs;
pub mod rules;
mod saved_episodes;
pub mod search;
pub mod shaping;
mod stage;
#[cfg(test)]
mod tests;

pub use batched::SymbolicBatchEnv;
pub use bench::bench;
pub use config::{SymbolicConfig, TaskConfig, TaskName};
pub(crate) use open::FAMILY;
pub use open::SymbolicTask;
pub(crate) use open::{evaluation_episodes, open};
pub use stage::Symbolic;
