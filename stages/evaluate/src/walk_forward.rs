//! The stage kind `evaluate/walk_forward`: the backtests of folds, whose test dates follow one another, as
//! one out of sample.

mod fold_runs;

use crate::account::CLOSING_COST;
use crate::config::{Auto, BacktestConfig, Block};
use crate::market::Role;
use crate::measures::{Known, Settings, measure};
use crate::output::{self, Metrics};
use crate::performance::{Performance, Periods, Returns};
use crate::trajectory::{self, RISK_AVERSION, RULES, TRIALS};
use fold_runs::{Fold, FoldRuns, joined};
use stages_core::periods::PERIODS_A_YEAR;
use stages_core::{
    Context, InputPort, OutputPort, Outputs, PeriodsAYear, PlanContext, Planned, PortType, Ports, StageError,
    StageEvent, StageKind,
};
use std::collections::BTreeSet;

stages_core::settings! {
    /// Configuration of `evaluate/walk_forward`.
    pub struct WalkForwardConfig {
        /// Seed of the bootstrap.
        pub seed: u64 = 0,
        /// Resamples of the bootstrap.
        pub bootstrap_draws: usize = 1000,
        /// Mean length of the bootstrap's blocks, in steps; `auto`: as long as the policy holds a position on
        /// average, and at most a twentieth of the test range.
        pub bootstrap_block: Block = Block::Auto(Auto::Auto),
        /// Strategies that were tried before this one was chosen, itself included, if more than the backtests
        /// of the folds say; by it the Sharpe ratio is deflated.
        pub trials: usize = 1,
    }
}

/// The stage kind `evaluate/walk_forward`.
pub struct WalkForward;

impl StageKind for WalkForward {
    type Config = WalkForwardConfig;
    const NAME: &'static str = "evaluate/walk_forward";
    // 4: by the measures of a backtest, without a step left out between folds.
    const VERSION: u32 = 5;
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
        let same = BacktestConfig {
            bootstrap_draws: config.bootstrap_draws,
            bootstrap_block: config.bootstrap_block,
            trials: config.trials,
            ..BacktestConfig::default()
        };
        same.validate()?;
        Ok(Self::PORTS.provided())
    }

    /// Backtests are of test data, unless they say otherwise.
    fn reads_test(&self, _: &WalkForwardConfig) -> bool {
        true
    }

    fn run(&self, config: &WalkForwardConfig, context: &Context) -> Result<Outputs, StageError> {
        let backtests = context.list("trajectory");
        let stated = backtests
            .first()
            .and_then(|first| PeriodsAYear::stated(&first.artifact.meta));
        let mut runs: Vec<FoldRuns> = backtests
            .iter()
            .map(|input| FoldRuns::read(&context.store, &input.artifact))
            .collect::<Result<_, _>>()?;
        runs.sort_by_key(|fold| fold.fold.from);
        let strategies = joined(&runs)?;
        let folds: Vec<Fold> = runs.iter().map(|fold| fold.fold).collect();
        warn_of_gaps(context, &folds);
        let alike = |first: &&FoldRuns| {
            let same =
                |fold: &FoldRuns| fold.risk_aversion == first.risk_aversion && fold.causes == first.causes;
            runs.iter().all(same)
        };
        let Some(first) = runs.first().filter(alike) else {
            return Err(StageError::new("the folds are not backtested alike")
                .hint("give them the same kind of environment and the same `risk_aversion`"));
        };
        let policy = &strategies[0].accounts;
        let of_year = stated.unwrap_or_else(|| {
            let times = &policy[0].times;
            PeriodsAYear::new(None, times.iter().map(|time| time.date), times)
        });
        let trials = runs
            .iter()
            .map(|fold| fold.trials)
            .max()
            .unwrap_or(1)
            .max(config.trials);
        let settings = Settings {
            seed: config.seed,
            bootstrap_draws: config.bootstrap_draws,
            bootstrap_block: config.bootstrap_block,
            risk_aversion: first.risk_aversion,
            trials,
        };
        let mut regimes: Vec<String> = policy.iter().flat_map(|of| &of.regimes).flatten().cloned().collect();
        regimes.sort();
        regimes.dedup();
        let known = Known {
            periods: Periods::from(&of_year),
            regimes,
            causes: first.causes.iter().cloned().chain([CLOSING_COST.to_owned()]).collect(),
        };
        let mut metrics = measure(&settings, &strategies, &known);
        for fold in &runs {
            of_fold(fold, known.periods, &mut metrics);
        }
        metrics.add("folds", folds.len() as f64);
        let mut about = serde_json::json!({
            "of": "walk_forward", "folds": folds, PERIODS_A_YEAR: of_year, TRIALS: trials,
            RISK_AVERSION: first.risk_aversion,
        });
        let rules: BTreeSet<String> = backtests
            .iter()
            .flat_map(|input| trajectory::rules(&input.artifact))
            .collect();
        if !rules.is_empty() {
            about[RULES] = serde_json::json!(rules);
        }
        output::store(context, metrics, &fold_runs::table(&folds, &strategies)?, about)
    }
}

/// Adds the chief figures of a fold by itself, below `fold/DATE/`.
fn of_fold(fold: &FoldRuns, periods: Periods, metrics: &mut Metrics) {
    let episodes = fold.strategies[0].accounts.len();
    for strategy in fold
        .strategies
        .iter()
        .filter(|strategy| strategy.role != Role::Ablation)
    {
        let returns: Vec<Returns> = strategy.accounts.iter().map(|account| account.returns(1.0)).collect();
        let wanted = ["total_return", "excess_return", "sharpe", "max_drawdown"];
        let measured = Performance::of(&returns, strategy.accounts.len() / episodes, periods);
        for (name, value) in measured.named().filter(|(name, _)| wanted.contains(name)) {
            metrics.add(format!("fold/{}/{}{name}", fold.fold.from, strategy.prefix()), value);
        }
    }
    let steps: usize = fold.strategies[0]
        .accounts
        .iter()
        .map(crate::account::Account::len)
        .sum();
    metrics.add(format!("fold/{}/steps", fold.fold.from), steps as f64);
}

fn warn_of_gaps(context: &Context, folds: &[Fold]) {
    for pair in folds.windows(2).filter(|pair| pair[0].to < pair[1].from) {
        context.events.emit(StageEvent::Warning {
            message: format!(
                "no fold is tested from {} to {}: the account earns nothing in between",
                pair[0].to, pair[1].from
            ),
            hint: Some(
                "let a fold's last step end on the first date of the next: `test: { from, to, \
                closes_after: true }`, as the folds of a matrix axis do"
                    .to_owned(),
            ),
        });
    }
}
