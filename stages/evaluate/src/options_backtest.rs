//! Evaluation over the test dates of `env/options`: the policy and its baselines, each from the first date to the last.

use crate::bootstrap;
use crate::config::BacktestConfig;
use crate::output::{self, Metrics};
use crate::performance::{LEAST_DAYS, Performance, Periods, sharpe};
use crate::policy_input::check_fits;
use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use cache::Artifact;
use stages_core::{Context, Outputs, StageError, StageEvent, table};
use stages_env::options::{Baseline, Ledger, OptionsEnv, Reason};
use stages_env::{BatchEnv, OpenOptions, Step};
use stages_numerics::random::Random;
use stages_policy::{Mode, Policy};
use std::sync::Arc;

/// The run of one strategy over the test dates.
struct Trajectory {
    strategy: &'static str,
    /// The number of the run among those of the same strategy.
    path: usize,
    /// The account at each snapshot, the first before any trade.
    ledgers: Vec<Ledger>,
    /// The action at each snapshot but the last; empty where it is none of the action space.
    actions: Vec<String>,
}

impl Trajectory {
    fn new(strategy: &'static str, path: usize, first: Ledger) -> Self {
        Self {
            strategy,
            path,
            ledgers: vec![first],
            actions: Vec::new(),
        }
    }

    /// Simple returns of the net asset value; after ruin or a debt there are none.
    fn returns(&self) -> Vec<f64> {
        self.ledgers
            .windows(2)
            .map(|pair| {
                if pair[0].nav > 0.0 {
                    (pair[1].nav / pair[0].nav - 1.0).max(-1.0)
                } else {
                    0.0
                }
            })
            .collect()
    }

    /// The periods of the returns.
    fn periods(&self) -> Periods {
        let days = self.ledgers.chunk_by(|a, b| a.date == b.date).count();
        Periods::between(self.ledgers.len(), days)
    }

    /// Measures of the account beyond its returns.
    fn account(&self) -> [(&'static str, f64); 3] {
        let (first, last) = (&self.ledgers[0], &self.ledgers[self.ledgers.len() - 1]);
        let mean_nav = self.ledgers.iter().map(|ledger| ledger.nav).sum::<f64>() / self.ledgers.len() as f64;
        let (steps, periods) = (self.ledgers.len() - 1, self.periods());
        let years = match periods.are_few(steps) {
            true => f64::NAN,
            false => steps as f64 / periods.per_year(),
        };
        [
            // Value traded a year, as a multiple of the mean net asset value.
            ("turnover", last.traded_value / mean_nav / years),
            // Spreads and commissions, as a fraction of the capital at the start.
            ("costs", (last.spread_cost + last.commission) / first.nav),
            ("liquidations", f64::from(last.liquidations)),
        ]
    }
}

pub(crate) fn backtest(
    config: &BacktestConfig,
    context: &Context,
    artifact: &Artifact,
    policy: &Policy,
) -> Result<Outputs, StageError> {
    let open = |paths: usize| {
        let options = OpenOptions {
            normalise_as: policy.spec().normalisation.clone(),
            ..OpenOptions::test(paths, config.seed)
        };
        stages_env::options::open(&context.store, artifact, &options)
    };
    let mut env = open(1)?;
    check_fits(policy.spec(), env.spec())?;
    let about = serde_json::json!({ "of": "options", "symbol": env.world(0), "capital": env.capital() });
    let mut runs = run_policy(config, context, policy, &mut env)?;
    for &baseline in &config.baselines {
        let paths = if baseline == Baseline::Random {
            config.random_paths
        } else {
            1
        };
        context.progress(runs.len() as u64, None, format!("baseline {}", baseline.name()));
        runs.extend(run_baseline(context, baseline, &mut open(paths)?)?);
    }
    let steps = env.test_steps(0);
    // Of daily steps, their number; by the days of the test range, whatever the policy's end.
    let periods = env.test_periods(0);
    let periods = Periods::between(periods.0, periods.1);
    if periods.are_few(steps) {
        let of_days = if periods == Periods::DAILY {
            String::new()
        } else {
            format!(", {} a day", periods.per_day)
        };
        context.events.emit(StageEvent::Warning {
            message: format!(
                "the test range has {steps} step{}{of_days}: annual figures (return, volatility, Sharpe ratio, turnover) need {} and are left out",
                if steps == 1 { "" } else { "s" },
                (LEAST_DAYS as f64 * periods.per_day).ceil()
            ),
            hint: Some("widen `test` or `test_fraction` of the environment".to_owned()),
        });
    }
    output::store(context, measure(config, &runs), &trajectory(&runs)?, about)
}

fn run_policy(
    config: &BacktestConfig,
    context: &Context,
    policy: &Policy,
    env: &mut OptionsEnv,
) -> Result<Vec<Trajectory>, StageError> {
    let mut state = policy.start(env.num_envs());
    let mut start = vec![true; env.num_envs()];
    let mut random = Random::new(&[config.seed, 0x706f_6c69]);
    run_all(context, "policy", env, |env, step, runs| {
        let mode = if config.deterministic {
            Mode::Greedy
        } else {
            Mode::Sample(&mut random)
        };
        let actions = policy.act(&step.obs, &step.action_mask, &start, &mut state, mode);
        start.fill(false);
        for (run, &action) in runs.iter_mut().zip(actions.discrete(env.num_envs())?) {
            run.actions
                .push(env.spec().action_space.names()[action as usize].clone());
        }
        env.step(actions, step.buffers())
    })
}

fn run_baseline(context: &Context, baseline: Baseline, env: &mut OptionsEnv) -> Result<Vec<Trajectory>, StageError> {
    run_all(context, baseline.name(), env, |env, step, runs| {
        for run in runs {
            run.actions.push(String::new());
        }
        env.step_baseline(baseline, step.buffers());
        Ok(())
    })
}

/// Runs every environment to the end of its first episode. `act` chooses, notes its choice, and steps.
fn run_all(
    context: &Context,
    strategy: &'static str,
    env: &mut OptionsEnv,
    mut act: impl FnMut(&mut OptionsEnv, &mut Step, &mut [Trajectory]) -> Result<(), StageError>,
) -> Result<Vec<Trajectory>, StageError> {
    let batch = env.num_envs();
    let mut step = Step::new(env.spec(), batch);
    env.reset(step.buffers());
    let mut runs: Vec<Trajectory> = (0..batch)
        .map(|i| Trajectory::new(strategy, i, env.ledger(i)))
        .collect();
    let mut ended = vec![false; batch];
    while ended.contains(&false) {
        context.check_cancelled()?;
        act(env, &mut step, &mut runs)?;
        for (i, run) in runs.iter_mut().enumerate() {
            let over = step.terminated[i] || step.truncated[i];
            if ended[i] {
                run.actions.pop();
            } else {
                let last = if over { env.final_ledger(i) } else { None };
                run.ledgers.push(last.unwrap_or_else(|| env.ledger(i)));
            }
            ended[i] |= over;
        }
    }
    Ok(runs)
}

/// The policy's measures by their plain name, those of a baseline below `baseline/NAME/`, the mean where it has several runs.
fn measure(config: &BacktestConfig, runs: &[Trajectory]) -> Metrics {
    let mut metrics = Metrics::default();
    let mut total = Vec::new();
    for group in runs.chunk_by(|a, b| a.strategy == b.strategy) {
        let strategy = group[0].strategy;
        let prefix = if strategy == "policy" {
            String::new()
        } else {
            format!("baseline/{strategy}/")
        };
        let returns: Vec<Vec<f64>> = group.iter().map(Trajectory::returns).collect();
        let measured: Vec<_> = group
            .iter()
            .zip(&returns)
            .map(|(run, returns)| Performance::of(returns, run.periods()))
            .collect();
        let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / group.len() as f64;
        for (at, (name, _)) in measured[0].named().into_iter().enumerate() {
            let value = mean(&mut measured.iter().map(|p| p.named()[at].1));
            metrics.add(format!("{prefix}{name}"), value);
            if name == "total_return" {
                total.push((strategy, value));
            }
        }
        if let [only] = returns.as_slice() {
            let (low, high) = bootstrap::stationary(
                only,
                config.bootstrap_block,
                config.bootstrap_draws,
                config.seed,
                |returns| sharpe(returns, group[0].periods()),
            );
            metrics.add(format!("{prefix}sharpe_low"), low);
            metrics.add(format!("{prefix}sharpe_high"), high);
        }
        for (at, (name, _)) in group[0].account().into_iter().enumerate() {
            metrics.add(
                format!("{prefix}{name}"),
                mean(&mut group.iter().map(|run| run.account()[at].1)),
            );
        }
    }
    let policy = total[0].1;
    for (baseline, value) in &total[1..] {
        metrics.add(format!("excess_over/{baseline}"), policy - value);
    }
    let last = &runs[0].ledgers[runs[0].ledgers.len() - 1];
    for (reason, count) in Reason::ALL.iter().zip(last.masked) {
        metrics.add(format!("masked/{}", reason.name()), f64::from(count));
    }
    metrics.add("steps", (runs[0].ledgers.len() - 1) as f64);
    metrics
}

fn trajectory(runs: &[Trajectory]) -> Result<RecordBatch, StageError> {
    let rows = || {
        runs.iter()
            .flat_map(|run| run.ledgers.iter().map(move |ledger| (run, ledger)))
    };
    let float = |of: &dyn Fn(&Ledger) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(rows().map(|(_, ledger)| of(ledger))))
    };
    let strategy: StringArray = rows().map(|(run, _)| Some(run.strategy)).collect();
    let path: Float64Array = rows().map(|(run, _)| Some(run.path as f64)).collect();
    let action: StringArray = rows()
        .map(|(run, ledger)| run.actions.get(ledger.step).filter(|name| !name.is_empty()))
        .collect();
    let mut columns: Vec<(&str, ArrayRef, bool)> =
        vec![("strategy", Arc::new(strategy), false), ("path", Arc::new(path), false)];
    let times = table::time_columns(rows().map(|(_, ledger)| ledger.time()));
    columns.extend(times.into_iter().map(|(name, array)| (name, array, false)));
    columns.extend([
        ("action", Arc::new(action) as ArrayRef, true),
        ("underlying", float(&|l| l.underlying), false),
        ("nav", float(&|l| l.nav), false),
        ("liquidation_value", float(&|l| l.liquidation_value), false),
        ("cash", float(&|l| l.cash), false),
        ("delta", float(&|l| l.delta), false),
        ("gamma", float(&|l| l.gamma), false),
        ("vega", float(&|l| l.vega), false),
        ("theta", float(&|l| l.theta), false),
        ("margin", float(&|l| l.margin), false),
        ("lines", float(&|l| l.lines as f64), false),
        ("model_marks", float(&|l| l.model_marks as f64), false),
        ("costs", float(&|l| l.spread_cost + l.commission), false),
        ("interest", float(&|l| l.interest), false),
        ("traded_value", float(&|l| l.traded_value), false),
    ]);
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}
