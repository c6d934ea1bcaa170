//! Evaluation on `env/table`: with a price, like that over any market; with columns of rewards, by episodes.

use crate::market::{Column, Layout, Market, Run, Statement, ledger_columns, mean_of_steps};
use crate::market_backtest::{self, Backtest, Compared, Evaluation};
use crate::table_episodes;
use crate::table_rules::{Rule, choices};
use stages_core::{Outputs, StageError};
use stages_env::BatchEnv as _;
use stages_env::table::{Ledger, TableEnv, TableSimulator};

pub(crate) fn backtest(of: Evaluation<'_>) -> Result<Outputs, StageError> {
    let one: TableEnv = of.open(1)?;
    match one.has_price() {
        true => market_backtest::backtest::<TableSimulator>(of),
        false => table_episodes::backtest(of, one),
    }
}

/// The positions after a step `[N]`.
pub(crate) struct Positions(pub Vec<f64>);

impl Market for TableSimulator {
    type Record = Positions;

    const PROFITS: &'static [&'static str] = &["prices", "costs"];
    const SHUFFLED: &'static str = "shuffled_symbols";

    fn statement(ledger: &Ledger) -> Statement {
        Statement {
            time: ledger.time,
            step: ledger.step,
            nav: ledger.nav,
            spread_cost: ledger.costs,
            costs: ledger.costs,
            traded_value: ledger.turnover,
            liquidations: 0.0,
            closing_cost: ledger.closing_cost,
        }
    }

    fn record(env: &TableEnv, i: usize, _: &Ledger, ended: bool) -> Positions {
        Positions(if ended { env.final_weights(i) } else { env.held(i) }.to_vec())
    }

    fn profit(before: &Ledger, after: &Ledger, _: &Positions) -> Vec<f64> {
        let costs = before.costs - after.costs;
        vec![after.nav - before.nav - costs, costs]
    }

    /// The value of the holdings, and half of the value traded.
    fn held(before: &Ledger, after: &Ledger, _: &Positions) -> (f64, f64) {
        (after.gross * after.nav, 0.5 * (after.turnover - before.turnover))
    }

    fn measures(runs: &[Run<Self>]) -> Vec<(String, f64)> {
        let mean = |of: &dyn Fn(&Ledger) -> f64| mean_of_steps(runs, of);
        [
            ("gross_exposure", mean(&|l| l.gross)),
            ("net_exposure", mean(&|l| l.net)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    fn layout(env: &TableEnv) -> Layout {
        let shown = env.common().row(env.snapshot(0)).len();
        Layout {
            market: 0..shown,
            instruments: 0..shown,
            width: shown / env.num_symbols(),
        }
    }

    fn about(env: &TableEnv) -> serde_json::Value {
        serde_json::json!({ "of": "table", "actions": env.spec().action_space.names() })
    }

    fn weight_names(env: &TableEnv) -> Vec<String> {
        let symbols = &env.spec().action_space.names()[..env.num_symbols()];
        match symbols {
            [_] => vec!["position".to_owned()],
            symbols => symbols.iter().map(|name| format!("position.{name}")).collect(),
        }
    }

    fn weights_after(record: &Positions) -> &[f64] {
        &record.0
    }

    fn columns(_: &TableEnv) -> Vec<Column<Self>> {
        ledger_columns!(Ledger: nav, costs, turnover, net, gross).to_vec()
    }
}

impl Compared for TableSimulator {
    fn compare(all: &mut Backtest<'_, Self>) -> Result<(), StageError> {
        let seed = all.of.config.seed;
        for rule in Rule::of_prices(all.of.config, &all.one, choices(all.of.config, &all.one)) {
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
