//! Evaluation on `env/table`: with a price as over any market, with columns of rewards by episodes.

use crate::config::BacktestConfig;
use crate::market_backtest::{Backtest, Role, Strategy};
use crate::market_env::Run;
use crate::market_env::{Layout, MarketEnv, Statement};
use crate::measures::{self, Known};
use crate::output;
use crate::runs::run_all;
use crate::table_episodes;
use crate::table_rules::{Rule, choices, times};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use cache::Artifact;
use datasets::Date;
use stages_core::{Context, Outputs, StageError};
use stages_env::table::{Ledger, TableEnv};
use stages_env::{BatchEnv as _, OpenOptions};
use stages_policy::Policy;
use std::sync::Arc;

/// A column of numbers by its name.
type Column = (&'static str, fn(&Ledger) -> f64);

const OF_LEDGER: [Column; 5] = [
    ("nav", |l| l.nav),
    ("costs", |l| l.costs),
    ("turnover", |l| l.turnover),
    ("net", |l| l.net),
    ("gross", |l| l.gross),
];

pub(crate) fn backtest(
    config: &BacktestConfig,
    context: &Context,
    artifact: &Artifact,
    policy: &Policy,
) -> Result<Outputs, StageError> {
    let open = |artifact: &Artifact, options: &OpenOptions| {
        stages_env::table::open(&context.store, artifact, options)
    };
    let all = Backtest {
        config,
        context,
        artifact,
        policy,
        open,
    };
    if !all.envs(1)?.has_price() {
        return table_episodes::backtest(config, context, policy, &|num_envs| all.envs(num_envs));
    }
    let (one, spans, periods) = all.start()?;
    let mut strategies = all.policy(&one, &spans)?;
    let choices = choices(config, &one);
    for rule in Rule::of_prices(config, &one, choices) {
        let paths = match rule {
            Rule::Random => config.random_paths,
            _ => 1,
        };
        let mut env = all.envs_for(paths, spans.len())?;
        let mut steps = 0;
        let runs = run_all(context, (&mut env, &spans), |env, step, _, _| {
            rule.step(config.seed, steps, env, step)?;
            steps += 1;
            Ok(())
        })?;
        context.progress(strategies.len() as u64, None, format!("baseline {}", rule.name(&one)));
        strategies.push(Strategy::baseline(rule.name(&one), runs));
    }
    let known = Known {
        periods,
        regimes: Vec::new(),
    };
    let metrics = measures::measure(config, &strategies, &known);
    strategies.retain(|strategy| strategy.role != Role::Ablation);
    let about = serde_json::json!({ "of": "table", "actions": one.spec().action_space.names() });
    output::store(context, metrics, &trajectory(&strategies, &one)?, about)
}

/// The table of the accounts of all strategies: a row for each row of each run, with the positions of the
/// policy.
fn trajectory(strategies: &[Strategy<TableEnv>], env: &TableEnv) -> Result<RecordBatch, StageError> {
    let runs = || {
        strategies
            .iter()
            .flat_map(|strategy| strategy.runs.iter().map(move |run| (strategy, run)))
    };
    let rows = || {
        runs().flat_map(|(strategy, run)| run.statements.iter().map(move |ledger| (strategy, run, ledger)))
    };
    let floats = |of: &dyn Fn(&Run<TableEnv>, &Ledger) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(
            rows().map(|(_, run, ledger)| of(run, ledger)),
        ))
    };
    let strategy: StringArray = rows().map(|(strategy, ..)| Some(strategy.name.as_str())).collect();
    let world: StringArray = rows().map(|(_, run, _)| Some(run.world.as_str())).collect();
    let mut columns: Vec<(String, ArrayRef, bool)> = vec![
        ("strategy".into(), Arc::new(strategy), false),
        ("path".into(), floats(&|run, _| run.path as f64), false),
    ];
    columns.extend(times(rows().map(|(.., ledger)| ledger.time)));
    columns.push(("world".into(), Arc::new(world), false));
    columns.push(("episode".into(), floats(&|run, _| run.episode as f64), false));
    // The prices' mean, as a walk-forward reads it.
    let underlying = Float64Array::from_iter_values(runs().flat_map(|(_, run)| run.underlying_levels()));
    columns.push(("underlying".into(), Arc::new(underlying), false));
    for (name, of) in OF_LEDGER {
        columns.push((name.into(), floats(&|_, ledger| of(ledger)), false));
    }
    for k in 0..env.num_symbols() {
        let positions: Float64Array = runs()
            .flat_map(|(strategy, run)| {
                let shown = strategy.role == Role::Policy;
                let after = run.notes.iter().map(|note| note.0[k]);
                std::iter::once(0.0)
                    .chain(after)
                    .map(move |position| shown.then_some(position))
            })
            .collect();
        let name = match env.num_symbols() {
            1 => "position".to_owned(),
            _ => format!("position.{}", env.spec().action_space.names()[k]),
        };
        columns.push((name, Arc::new(positions), true));
    }
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}

impl Statement for Ledger {
    fn step(&self) -> usize {
        self.step
    }

    fn nav(&self) -> f64 {
        self.nav
    }

    fn spread_cost(&self) -> f64 {
        self.costs
    }

    fn costs(&self) -> f64 {
        self.costs
    }

    fn traded_value(&self) -> f64 {
        self.turnover
    }

    fn liquidations(&self) -> f64 {
        0.0
    }
}

/// The positions after a step `[N]`.
pub(crate) struct Positions(pub Vec<f64>);

impl MarketEnv for TableEnv {
    type Statement = Ledger;
    type Note = Positions;

    const PROFITS: &'static [&'static str] = &["prices", "costs"];
    const SHUFFLED: &'static str = "shuffled_symbols";

    fn statement(&self, i: usize) -> Ledger {
        self.ledger(i)
    }

    fn final_statement(&self, i: usize) -> Option<Ledger> {
        self.final_ledger(i)
    }

    fn note(&self, i: usize, _: &Ledger, ended: bool) -> Positions {
        Positions(if ended { self.final_held(i) } else { self.held(i) }.to_vec())
    }

    fn profit(before: &Ledger, after: &Ledger, _: &Positions) -> Vec<f64> {
        let costs = before.costs - after.costs;
        vec![after.nav - before.nav - costs, costs]
    }

    /// By value: what is held, and half of what is traded.
    fn held(before: &Ledger, after: &Ledger, _: &Positions) -> (f64, f64) {
        (after.gross * after.nav, 0.5 * (after.turnover - before.turnover))
    }

    fn measures(runs: &[Run<Self>]) -> Vec<(String, f64)> {
        let mean = |of: &dyn Fn(&Ledger) -> f64| {
            let all = runs.iter().flat_map(|run| &run.statements[1..]);
            let (sum, count) = all.fold((0.0, 0.0), |(sum, count), ledger| (sum + of(ledger), count + 1.0));
            sum / count
        };
        [
            ("gross_exposure", mean(&|l| l.gross)),
            ("net_exposure", mean(&|l| l.net)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    fn evaluation_episodes(&self) -> usize {
        Self::evaluation_episodes(self)
    }

    fn snapshot(&self, i: usize) -> usize {
        self.row(i)
    }

    fn world(&self, i: usize) -> &str {
        Self::world(self, i)
    }

    fn test_steps(&self, i: usize) -> usize {
        Self::test_steps(self, i)
    }

    fn test_dates(&self, i: usize) -> Vec<Date> {
        Self::test_dates(self, i)
    }

    /// Cash earns nothing.
    fn risk_free_return(&self, _: usize) -> f64 {
        0.0
    }

    fn underlying_return(&self, snapshot: usize) -> f64 {
        self.mean_payoff(snapshot)
    }

    fn market_row(&self, snapshot: usize) -> &[f32] {
        self.shown(snapshot)
    }

    fn layout(&self) -> Layout {
        let shown = self.shown(self.row(0)).len();
        Layout {
            market: 0..shown,
            instruments: 0..shown,
            width: shown / self.num_symbols(),
        }
    }
}
