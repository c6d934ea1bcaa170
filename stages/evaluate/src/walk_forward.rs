//! The stage kind `evaluate/walk_forward`: the backtests of folds, whose test dates follow one another, as
//! one out of sample.

mod fold_runs;
mod measure;

use crate::output;
use fold_runs::{FoldRuns, joined};
use stages_core::periods::PERIODS_A_YEAR;
use stages_core::{
    ConfigProblem, Context, InputPort, OutputPort, Outputs, PeriodsAYear, PlanContext, Planned, PortType,
    Ports, StageError, StageKind,
};

stages_core::settings! {
    /// Configuration of `evaluate/walk_forward`.
    pub struct WalkForwardConfig {
        /// Seed of the bootstrap.
        pub seed: u64 = 0,
        /// Resamples of the bootstrap.
        pub bootstrap_draws: usize = 1000,
        /// Mean length of the bootstrap's blocks, in steps.
        pub bootstrap_block: f64 = 20.0,
    }
}

/// The stage kind `evaluate/walk_forward`.
pub struct WalkForward;

impl StageKind for WalkForward {
    type Config = WalkForwardConfig;
    const NAME: &'static str = "evaluate/walk_forward";
    const VERSION: u32 = 3;
    const ABOUT: &'static str =
        "the backtests of folds as one, out of sample from the first test date to the last";
    const PORTS: Ports = Ports {
        inputs: &[InputPort::list("trajectory", PortType::Trajectory)
            .doc("the backtest of each fold: `evaluate[*]`, say; their dates must not overlap")],
        outputs: &[
            OutputPort::new("metrics", PortType::Metrics)
                .doc("measures over all test dates, with intervals, and of each fold"),
            OutputPort::new("trajectory", PortType::Trajectory)
                .doc("the accounts of all folds, in order of time, each compounding the one before"),
        ],
    };

    fn check(&self, config: &WalkForwardConfig, _: &PlanContext) -> Planned {
        ConfigProblem::new("bootstrap_draws", "must be at least 1")
            .hint("the default is 1000")
            .when(config.bootstrap_draws == 0)?;
        ConfigProblem::new("bootstrap_block", "must be at least 1 step")
            .hint("the default is 20")
            .when(!(1.0..=1e9).contains(&config.bootstrap_block))?;
        Ok(Self::PORTS.provided())
    }

    fn run(&self, config: &WalkForwardConfig, context: &Context) -> Result<Outputs, StageError> {
        let backtests = context.list("trajectory");
        let stated = backtests
            .first()
            .and_then(|first| PeriodsAYear::stated(&first.artifact.meta));
        let folds: Vec<FoldRuns> = backtests
            .iter()
            .map(|input| FoldRuns::read(&context.store, &input.artifact))
            .collect::<Result<_, _>>()?;
        let (folds, strategies) = joined(folds)?;
        let (metrics, periods) = measure::measure(config, &folds, &strategies, stated)?;
        let about = serde_json::json!({ "of": "walk_forward", "folds": folds, PERIODS_A_YEAR: periods });
        output::store(context, metrics, &fold_runs::table(&folds, &strategies)?, about)
    }
}
