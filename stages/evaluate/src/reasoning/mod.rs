//! Evaluation of agents that reason over knowledge bases.

pub mod baselines;
pub mod ranking;
pub mod verdicts;
