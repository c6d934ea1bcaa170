//! Evaluation on `env/table`: with a price as over any market, with columns of rewards by episodes.

use crate::config::BacktestConfig;
use crate::market::{Column, Layout, Market, Run, Statement, Table};
use crate::market_backtest::{self, Backtest, Compared};
use crate::table_episodes;
use crate::table_rules::{Rule, choices};
use cache::Artifact;
use datasets::SnapshotTime;
use stages_core::{Context, Outputs, StageError};
use stages_env::BatchEnv as _;
use stages_env::table::{Ledger, TableEnv, TableSimulator};
use stages_policy::Policy;

pub(crate) fn backtest(
    config: &BacktestConfig,
    context: &Context,
    artifact: &Artifact,
    policy: &Policy,
) -> Result<Outputs, StageError> {
    let open = |num_envs| market_backtest::open(config, context, artifact, policy, num_envs);
    let one: TableEnv = open(1)?;
    match one.has_price() {
        true => market_backtest::backtest::<TableSimulator>(config, context, artifact, policy),
        false => table_episodes::backtest(config, context, policy, &open),
    }
}

impl Statement for Ledger {
    fn time(&self) -> SnapshotTime {
        self.time
    }

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

impl Market for TableSimulator {
    type Record = Positions;

    const PROFITS: &'static [&'static str] = &["prices", "costs"];
    const SHUFFLED: &'static str = "shuffled_symbols";

    fn record(env: &TableEnv, i: usize, _: &Ledger, ended: bool) -> Positions {
        Positions(if ended { env.final_weights(i) } else { env.held(i) }.to_vec())
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

    fn layout(env: &TableEnv) -> Layout {
        let shown = env.market_row(env.snapshot(0)).len();
        Layout {
            market: 0..shown,
            instruments: 0..shown,
            width: shown / env.num_symbols(),
        }
    }

    fn about(env: &TableEnv) -> serde_json::Value {
        serde_json::json!({ "of": "table", "actions": env.spec().action_space.names() })
    }

    const TABLE: Table<Self> = Table {
        actions: false,
        profits: false,
        levels: true,
        weights: |env| match env.num_symbols() {
            1 => vec!["position".to_owned()],
            n => {
                let symbols = &env.spec().action_space.names()[..n];
                symbols.iter().map(|name| format!("position.{name}")).collect()
            }
        },
        of_record: |record| &record.0,
    };

    fn columns(_: &TableEnv) -> Vec<Column<Self>> {
        vec![
            ("nav", |l| l.nav),
            ("costs", |l| l.costs),
            ("turnover", |l| l.turnover),
            ("net", |l| l.net),
            ("gross", |l| l.gross),
        ]
    }
}

impl Compared for TableSimulator {
    fn compare(all: &mut Backtest<'_, Self>) -> Result<(), StageError> {
        let seed = all.config.seed;
        for rule in Rule::of_prices(all.config, &all.one, choices(all.config, &all.one)) {
            let mut steps = 0;
            all.baseline(rule.name(&all.one), rule == Rule::Random, |env, step, _, _| {
                rule.step(seed, steps, env, step)?;
                steps += 1;
                Ok(())
            })?;
        }
        Ok(())
    }
}
