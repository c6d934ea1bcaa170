//! Evaluation: backtests against baselines, and measures of performance.

mod ablation;
mod account;
pub mod acting;
mod backtest;
mod bootstrap;
mod compare;
mod config;
mod decide;
mod drift;
mod effective;
mod episodes;
mod hedging_backtest;
mod inference;
mod learning_curves;
mod lookup_backtest;
mod market;
mod market_backtest;
mod measures;
mod options;
mod output;
mod overfitting;
mod panel;
pub mod paper;
mod partition;
mod performance;
mod policy_input;
mod portfolio_rules;
pub mod promise;
mod ranking;
mod regression;
mod risk_aversion;
mod rule_search;
mod rules;
mod runs;
mod seen;
mod stocks;
mod study;
mod table;
mod table_episodes;
mod table_rules;
#[cfg(test)]
mod tests;
mod trajectory;
mod trials;
mod walk_forward;

pub use acting::{AccountKind, DecideConfig};
pub use backtest::Backtest;
pub use compare::{Compare, CompareConfig, VerdictConfig};
pub use config::{BacktestConfig, EvaluatedOn};
pub use decide::{Decide, Decided};
pub use drift::{Drift, DriftConfig, DriftLimits, LimitsFrom};
pub use inference::{holm, two_sided};
pub use learning_curves::{LearningCurves, LearningCurvesConfig};
pub use output::{Metrics, store_metrics_with};
pub use overfitting::{Overfitting, OverfittingConfig, OverfittingMeasure};
pub use panel::Estimate;
pub use performance::{mean_and_deviation, quantile};
pub use study::{Study, StudyConfig};
pub use walk_forward::{WalkForward, WalkForwardConfig};

/// The stage kinds of this family.
pub fn kinds() -> Vec<Box<dyn stages_core::AnyStage>> {
    vec![
        stages_core::erase(Backtest),
        stages_core::erase(Compare),
        stages_core::erase(Decide),
        stages_core::erase(Drift),
        stages_core::erase(LearningCurves),
        stages_core::erase(Overfitting),
        stages_core::erase(Study),
        stages_core::erase(WalkForward),
    ]
}
