//! Evaluation of agents that reason over knowledge bases.

pub mod verdicts;
