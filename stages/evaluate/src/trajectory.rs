//! The table of the accounts of all strategies, step by step.

use crate::market_backtest::Strategy as Of;
use crate::market_env::MarketEnv as _;
use crate::market_env::Run as RunOf;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use stages_core::{StageError, table};
use stages_env::options::{Ledger, OptionsEnv};
use std::sync::Arc;

type Strategy = Of<OptionsEnv>;
type Run = RunOf<OptionsEnv>;

/// A column of numbers by its name.
type Column = (&'static str, fn(&Ledger) -> f64);

/// The table of strategies: a row for each snapshot of each run. Profits are those of the step that ends at
/// the row's snapshot.
pub(crate) fn trajectory(strategies: &[Strategy]) -> Result<RecordBatch, StageError> {
    let runs = || {
        strategies
            .iter()
            .flat_map(|strategy| strategy.runs.iter().map(move |run| (strategy, run)))
    };
    let rows = || {
        runs().flat_map(|(strategy, run)| run.statements.iter().map(move |ledger| (strategy, run, ledger)))
    };
    let float = |of: &dyn Fn(&Ledger) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(rows().map(|(_, _, ledger)| of(ledger))))
    };
    let strategy: StringArray = rows().map(|(strategy, _, _)| Some(strategy.name.as_str())).collect();
    let world: StringArray = rows().map(|(_, run, _)| Some(run.world.as_str())).collect();
    let episode: Float64Array = rows().map(|(_, run, _)| Some(run.episode as f64)).collect();
    let path: Float64Array = rows().map(|(_, run, _)| Some(run.path as f64)).collect();
    let action = |(_, run, ledger): (&Strategy, &Run, &Ledger)| {
        run.actions.get(ledger.step).filter(|name| !name.is_empty()).cloned()
    };
    let action: StringArray = rows()
        .map(|(strategy, run, ledger)| action((strategy, run, ledger)))
        .collect();
    let mut columns: Vec<(String, ArrayRef, bool)> = Vec::new();
    let mut add = |name: &str, array: ArrayRef| columns.push((name.to_owned(), array, name == "action"));
    add("strategy", Arc::new(strategy));
    add("path", Arc::new(path));
    for (name, array) in table::time_columns(rows().map(|(_, _, ledger)| ledger.time())) {
        add(name, array);
    }
    add("world", Arc::new(world));
    add("episode", Arc::new(episode));
    add("action", Arc::new(action));
    let of_ledger: [Column; 16] = [
        ("underlying", |l| l.underlying),
        ("nav", |l| l.nav),
        ("liquidation_value", |l| l.liquidation_value),
        ("cash", |l| l.cash),
        ("units", |l| l.units),
        ("delta", |l| l.delta),
        ("gamma", |l| l.gamma),
        ("vega", |l| l.vega),
        ("theta", |l| l.theta),
        ("margin", |l| l.margin),
        ("lines", |l| l.lines as f64),
        ("model_marks", |l| l.model_marks as f64),
        ("costs", |l| l.spread_cost + l.commission),
        ("spread_cost", |l| l.spread_cost),
        ("interest", |l| l.interest),
        ("traded_value", |l| l.traded_value),
    ];
    for (name, of) in of_ledger {
        add(name, float(&of));
    }
    let none = vec![0.0; OptionsEnv::PROFITS.len()];
    let profits: Vec<Vec<f64>> = runs()
        .flat_map(|(_, run)| std::iter::once(none.clone()).chain(run.profits()))
        .collect();
    for (k, name) in OptionsEnv::PROFITS.iter().enumerate() {
        let values = Float64Array::from_iter_values(profits.iter().map(|by| by[k]));
        add(&format!("profit_{name}"), Arc::new(values));
    }
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}
