//! Symbolic environments: states are bags of atoms, actions as many as the state offers.
//!
//! The stage kind `env/symbolic` stores one ([`Symbolic`]), [`SymbolicTask`] opens it.

pub mod batch;
mod bench;
mod config;
mod open;
pub mod proofs;
pub mod rules;
mod stage;
#[cfg(test)]
mod tests;

pub use bench::{SymbolicRow, bench};
pub use config::{SymbolicConfig, TaskConfig, TaskName};
pub(crate) use open::FAMILY;
pub use open::{SymbolicTask, is_symbolic};
pub use stage::Symbolic;
