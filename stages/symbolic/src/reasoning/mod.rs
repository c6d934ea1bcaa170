//! Evaluation of policies that reason over symbols, and the stage kind `evaluate/reasoning`.

mod actor;
pub mod baselines;
mod config;
pub mod path_study;
pub mod play;
pub mod proof_study;
pub mod ranking;
mod rule_study;
mod runs;
pub mod sheet;
mod stage;
mod study;
pub mod verdicts;

pub use config::{PathPooling, ReasoningBaseline, ReasoningConfig};
pub use stage::Reasoning;
