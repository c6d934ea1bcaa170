//! The measures of a walk-forward: over all test dates with intervals, against each baseline, and for each
//! fold.

use super::WalkForwardConfig;
use super::fold_runs::{Fold, Run, Strategy};
use crate::bootstrap;
use crate::output::Metrics;
use crate::panel::Estimate;
use crate::performance::{Performance, Periods, Returns, mean_and_deviation, sharpe};
use stages_core::{PeriodsAYear, StageError};

/// The baseline whose returns are the risk-free ones.
const RISK_FREE: &str = "cash";

/// The returns of a strategy's path over several runs, as many as those of cash.
fn returns(runs: &[Run], cash: &[Run]) -> Returns {
    let mut all = Returns::default();
    for (run, cash) in runs.iter().zip(cash) {
        let fold = Returns::of_account(run.returns(), &cash.returns(), &cash.underlying_returns());
        all.account.extend(fold.account);
        all.excess.extend(fold.excess);
        all.underlying.extend(fold.underlying);
    }
    all
}

/// The policy's measures under their plain names, those of a baseline under `baseline/NAME/`, the policy's
/// excess over a baseline as `versus/NAME/excess_return`, and those of each fold under `fold/DATE/`; and the
/// periods a year, those that are stated or else by the dates.
pub(super) fn measure(
    config: &WalkForwardConfig,
    folds: &[Fold],
    strategies: &[Strategy],
    stated: Option<PeriodsAYear>,
) -> Result<(Metrics, PeriodsAYear), StageError> {
    let named = |name: &str| strategies.iter().find(|strategy| strategy.name == name);
    let missing = |what: &str| {
        StageError::new(format!("the backtests of the folds have no {what}"))
            .hint("backtest each fold with the default `baselines`")
    };
    let policy = named("policy").ok_or_else(|| missing("policy"))?;
    let cash = &named(RISK_FREE)
        .ok_or_else(|| missing("baseline `cash`, whose returns are the risk-free ones"))?
        .paths[0];
    let whole = |strategy: &Strategy| -> Vec<Returns> {
        let paths = strategy.paths.iter();
        paths.map(|runs| returns(runs, cash)).collect()
    };
    let of_year = stated.unwrap_or_else(|| {
        let times: Vec<_> = cash.iter().flat_map(Run::times).copied().collect();
        PeriodsAYear::new(None, times.iter().map(|time| time.date), &times)
    });
    let periods = Periods::from(&of_year);
    let ours = whole(policy);
    let mut metrics = Metrics::default();
    for strategy in strategies {
        let prefix = prefix(strategy);
        let series = whole(strategy);
        for (name, value) in Performance::of(&series, periods).named() {
            metrics.add(format!("{prefix}{name}"), value);
        }
        if let [only] = series.as_slice() {
            let interval = |of: &dyn Fn(&[f64]) -> f64| interval(config, &only.excess, of);
            let annual = |excess: &[f64]| mean_and_deviation(excess).0 * periods.annual(excess.len());
            metrics.interval(&format!("{prefix}sharpe"), interval(&|excess| sharpe(excess, periods)));
            metrics.interval(&format!("{prefix}excess_return"), interval(&annual));
        }
    }
    for baseline in strategies.iter().filter(|strategy| strategy.name != policy.name) {
        let theirs = whole(baseline);
        let steps = ours[0].account.len();
        // Of several paths, the mean at each step.
        let mean =
            |t: usize| theirs.iter().map(|series| series.account[t]).sum::<f64>() / theirs.len() as f64;
        let differences: Vec<f64> = (0..steps).map(|t| ours[0].account[t] - mean(t)).collect();
        let annual = |values: &[f64]| mean_and_deviation(values).0 * periods.annual(values.len());
        let of = interval(config, &differences, &annual);
        metrics.estimate(&format!("versus/{}/excess_return", baseline.name), of);
    }
    for (at, fold) in folds.iter().enumerate() {
        let fold_returns = |runs: &Vec<Run>| returns(&runs[at..=at], &cash[at..=at]);
        for strategy in strategies {
            let series: Vec<Returns> = strategy.paths.iter().map(fold_returns).collect();
            let wanted = ["total_return", "excess_return", "sharpe", "max_drawdown"];
            for (name, value) in Performance::of(&series, periods).named() {
                if wanted.contains(&name) {
                    metrics.add(format!("fold/{}/{}{name}", fold.from, prefix(strategy)), value);
                }
            }
        }
        metrics.add(format!("fold/{}/steps", fold.from), cash[at].returns().len() as f64);
    }
    metrics.add("folds", folds.len() as f64);
    metrics.add("steps", ours[0].account.len() as f64);
    metrics.add("periods_a_year", periods.per_year);
    Ok((metrics, of_year))
}

fn prefix(strategy: &Strategy) -> String {
    match strategy.name.as_str() {
        "policy" => String::new(),
        name => format!("baseline/{name}/"),
    }
}

/// A statistic with its 95 % interval, by the stationary bootstrap.
fn interval(config: &WalkForwardConfig, values: &[f64], statistic: &dyn Fn(&[f64]) -> f64) -> Estimate {
    let (block, draws) = (config.bootstrap_block, config.bootstrap_draws);
    let (low, high) = bootstrap::stationary(values, block, draws, config.seed, statistic);
    Estimate {
        value: statistic(values),
        low,
        high,
    }
}
