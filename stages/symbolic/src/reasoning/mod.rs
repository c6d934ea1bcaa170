//! Evaluation of policies that reason over symbols, and the stage kind `evaluate/reasoning`.

mod actor;
pub mod baselines;
mod config;
mod path_study;
pub mod plans;
pub mod play;
mod proof_study;
pub mod ranking;
mod rule_study;
mod sheet;
mod stage;
mod study;
pub mod verdicts;

pub use config::{PathPooling, ReasoningBaseline, ReasoningConfig, ReasoningSplit};
pub use stage::Reasoning;
