//! Symbolic environments: states are bags of atoms, actions as many as the state offers.

pub mod batch;
mod bench;
mod counts;
pub mod paths;
pub mod proofs;
pub mod rules;

pub use bench::{SymbolicRow, bench};
