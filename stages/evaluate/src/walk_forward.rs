//! The stage kind `evaluate/walk_forward`: the backtests of folds, whose test dates follow one another, as
//! one out of sample.

mod fold_runs;
mod measure;

use crate::output;
use fold_runs::{FoldRuns, joined};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::{
    ConfigProblem, Context, InputPort, OutputPort, Outputs, PlanContext, PortType, Ports, Provided,
    StageError, StageKind,
};
use std::collections::BTreeMap;

/// Configuration of `evaluate/walk_forward`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WalkForwardConfig {
    /// Seed of the bootstrap.
    pub seed: u64,
    /// Resamples of the bootstrap.
    pub bootstrap_draws: usize,
    /// Mean length of the bootstrap's blocks, in steps.
    pub bootstrap_block: f64,
}

impl Default for WalkForwardConfig {
    fn default() -> Self {
        Self {
            seed: 0,
            bootstrap_draws: 1000,
            bootstrap_block: 20.0,
        }
    }
}

/// The stage kind `evaluate/walk_forward`.
pub struct WalkForward;

impl StageKind for WalkForward {
    type Config = WalkForwardConfig;
    const NAME: &'static str = "evaluate/walk_forward";
    const VERSION: u32 = 2;
    const ABOUT: &'static str =
        "the backtests of folds as one, out of sample from the first test date to the last";
    const PORTS: Ports = Ports {
        inputs: &[InputPort {
            name: "trajectory",
            ty: PortType::Trajectory,
            optional: false,
            list: true,
            doc: "the backtest of each fold: `evaluate[*]`, say; their dates must not overlap",
        }],
        outputs: &[
            OutputPort {
                name: "metrics",
                ty: PortType::Metrics,
                doc: "measures over all test dates, with intervals, and of each fold",
            },
            OutputPort {
                name: "trajectory",
                ty: PortType::Trajectory,
                doc: "the accounts of all folds, in order of time, each compounding the one before",
            },
        ],
    };

    fn check(
        &self,
        config: &WalkForwardConfig,
        _: &PlanContext,
    ) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        if config.bootstrap_draws == 0 {
            return Err(
                ConfigProblem::new("bootstrap_draws", "must be at least 1").hint("the default is 1000")
            );
        }
        if !(1.0..=1e9).contains(&config.bootstrap_block) {
            return Err(
                ConfigProblem::new("bootstrap_block", "must be at least 1 step").hint("the default is 20")
            );
        }
        Ok(BTreeMap::from([
            ("metrics".to_owned(), Provided::unknown(PortType::Metrics)),
            ("trajectory".to_owned(), Provided::unknown(PortType::Trajectory)),
        ]))
    }

    fn run(&self, config: &WalkForwardConfig, context: &Context) -> Result<Outputs, StageError> {
        let folds: Vec<FoldRuns> = context
            .list("trajectory")
            .iter()
            .map(|input| FoldRuns::read(&context.store, &input.artifact))
            .collect::<Result<_, _>>()?;
        let (folds, strategies) = joined(folds)?;
        let metrics = measure::measure(config, &folds, &strategies)?;
        let about = serde_json::json!({ "of": "walk_forward", "folds": folds });
        output::store(context, metrics, &fold_runs::table(&folds, &strategies)?, about)
    }
}
