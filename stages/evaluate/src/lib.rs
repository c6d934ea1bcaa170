//! Evaluation: backtests against baselines, and measures of performance.

mod backtest;
pub mod bootstrap;
pub mod episodes;
mod hedging;
mod lookup;
mod options;
mod output;
pub mod performance;

pub use backtest::{Backtest, BacktestConfig};

/// The stage kinds of this family.
pub fn kinds() -> Vec<Box<dyn stages_core::AnyStage>> {
    vec![stages_core::erase(Backtest)]
}
