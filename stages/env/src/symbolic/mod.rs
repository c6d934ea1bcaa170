//! Symbolic environments: states are bags of atoms, actions as many as the state offers.

pub mod batch;
pub mod proofs;
pub mod rules;
