//! The table of the accounts of all strategies on `env/stocks`, step by step, with the weights of the policy.

use crate::market_backtest::{Role, Strategy};
use crate::market_env::MarketEnv as _;
use crate::market_env::Run;
use arrow_array::{ArrayRef, Date32Array, Float64Array, RecordBatch, StringArray};
use stages_core::StageError;
use stages_env::BatchEnv as _;
use stages_env::stocks::{HedgeLedger, Ledger, StocksEnv};
use std::sync::Arc;

/// A column of numbers by its name.
type Column = (&'static str, fn(&Ledger) -> f64);

const OF_LEDGER: [Column; 20] = [
    ("nav", |l| l.nav),
    ("cash", |l| l.cash),
    ("gross", |l| l.gross),
    ("net", |l| l.net),
    ("concentration", |l| l.concentration),
    ("positions", |l| l.positions as f64),
    ("costs", Ledger::costs),
    ("commission", |l| l.commission),
    ("spread_cost", |l| l.spread_cost),
    ("impact_cost", |l| l.impact_cost),
    ("borrow_cost", |l| l.borrow_cost),
    ("interest", |l| l.interest),
    ("debit_interest", |l| l.debit_interest),
    ("dividends", |l| l.dividends),
    ("delisting_loss", |l| l.delisting_loss),
    ("traded_value", |l| l.traded_value),
    ("trades", |l| f64::from(l.trades)),
    ("refused", |l| f64::from(l.refused)),
    ("reduced", |l| f64::from(l.reduced)),
    ("liquidations", |l| f64::from(l.liquidations)),
];

/// A column of numbers of the hedge by its name.
type HedgeColumn = (&'static str, fn(&HedgeLedger) -> f64);

const OF_HEDGE: [HedgeColumn; 9] = [
    ("hedge_units", |l| l.units),
    ("hedge_value", |l| l.value),
    ("hedge_exposure", |l| l.exposure),
    ("hedge_gains", |l| l.gains),
    ("hedge_dividends", |l| l.dividends),
    ("hedge_borrow_cost", |l| l.borrow_cost),
    ("hedge_commission", |l| l.commission),
    ("hedge_spread_cost", |l| l.spread_cost),
    ("hedge_traded_value", |l| l.traded_value),
];

/// The table of strategies: a row for each date of each run. Profits are those of the step that ends at the
/// row's date.
pub(crate) fn trajectory(
    strategies: &[Strategy<StocksEnv>],
    env: &StocksEnv,
) -> Result<RecordBatch, StageError> {
    let runs = || {
        strategies
            .iter()
            .flat_map(|strategy| strategy.runs.iter().map(move |run| (strategy, run)))
    };
    let rows = || {
        runs().flat_map(|(strategy, run)| run.statements.iter().map(move |ledger| (strategy, run, ledger)))
    };
    let floats = |of: &dyn Fn(&Run<StocksEnv>, &Ledger) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(
            rows().map(|(_, run, ledger)| of(run, ledger)),
        ))
    };
    let strategy: StringArray = rows().map(|(strategy, ..)| Some(strategy.name.as_str())).collect();
    let world: StringArray = rows().map(|(_, run, _)| Some(run.world.as_str())).collect();
    let date = Date32Array::from_iter_values(rows().map(|(_, _, ledger)| ledger.date.0));
    let mut columns: Vec<(String, ArrayRef, bool)> = Vec::new();
    let mut add = |name: String, array: ArrayRef, nullable| columns.push((name, array, nullable));
    add("strategy".into(), Arc::new(strategy), false);
    add("path".into(), floats(&|run, _| run.path as f64), false);
    add("date".into(), Arc::new(date), false);
    add("world".into(), Arc::new(world), false);
    add("episode".into(), floats(&|run, _| run.episode as f64), false);
    // The market, as a walk-forward reads it.
    let underlying = Float64Array::from_iter_values(runs().flat_map(|(_, run)| run.underlying_levels()));
    add("underlying".into(), Arc::new(underlying), false);
    for (name, of) in OF_LEDGER {
        add(name.into(), floats(&|_, ledger| of(ledger)), false);
    }
    let of_hedge = |of: fn(&HedgeLedger) -> f64| move |ledger: &Ledger| ledger.hedge.as_ref().map_or(0.0, of);
    for (name, of) in OF_HEDGE.into_iter().filter(|_| env.hedges()) {
        let of = of_hedge(of);
        add(name.into(), floats(&|_, ledger| of(ledger)), false);
    }
    let none = vec![0.0; StocksEnv::PROFITS.len()];
    let profits: Vec<Vec<f64>> = runs()
        .flat_map(|(_, run)| std::iter::once(none.clone()).chain(run.profits()))
        .collect();
    let causes = profits.iter().map(Vec::len).min().unwrap_or(0);
    for (k, name) in StocksEnv::PROFITS[..causes].iter().enumerate() {
        let values = Float64Array::from_iter_values(profits.iter().map(|by| by[k]));
        add(format!("profit_{name}"), Arc::new(values), false);
    }
    for (k, name) in env.spec().action_space.names()[..env.num_symbols()].iter().enumerate() {
        let weights: Float64Array = runs()
            .flat_map(|(strategy, run)| {
                let shown = strategy.role == Role::Policy;
                let after = run.notes.iter().map(|note| note.weights[k]);
                std::iter::once(0.0)
                    .chain(after)
                    .map(move |weight| shown.then_some(weight))
            })
            .collect();
        add(format!("weight.{name}"), Arc::new(weights), true);
    }
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}
