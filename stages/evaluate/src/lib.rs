//! Evaluation: backtests against baselines, and measures of performance.

mod backtest;
pub mod bootstrap;
mod config;
pub mod episodes;
mod hedging_backtest;
mod lookup_backtest;
mod options_backtest;
mod output;
pub mod performance;
mod policy_input;
mod rules;
#[cfg(test)]
mod tests;
mod walk_forward;

pub use backtest::Backtest;
pub use config::BacktestConfig;
pub use walk_forward::{WalkForward, WalkForwardConfig};

/// The stage kinds of this family.
pub fn kinds() -> Vec<Box<dyn stages_core::AnyStage>> {
    vec![stages_core::erase(Backtest), stages_core::erase(WalkForward)]
}
