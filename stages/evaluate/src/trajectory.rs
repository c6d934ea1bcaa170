//! The table of the accounts of all strategies, step by step.

use crate::market::{Market, Role, Run, Strategy};
use crate::performance::Periods;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use cache::{Artifact, Store};
use datasets::SnapshotTime;
use stages_core::{PeriodsAYear, StageError, table};
use stages_env::{PortfolioEnv, Simulator};
use std::sync::Arc;

/// The file name of a trajectory.
pub(crate) const FILE: &str = "trajectory.parquet";

/// The text of a row for a column.
type TextOf<'a, S> = dyn Fn(&Strategy<S>, &Run<S>, &<S as Simulator>::Ledger) -> Option<String> + 'a;

/// The table of the strategies' accounts: a row for each snapshot of each run. Profits are those of the step
/// that ends at the row's snapshot; weights, for the policy alone, are those to which that step led.
pub(crate) fn trajectory<S: Market>(
    strategies: &[Strategy<S>],
    env: &PortfolioEnv<S>,
) -> Result<RecordBatch, StageError> {
    let runs = || {
        strategies
            .iter()
            .flat_map(|strategy| strategy.runs.iter().map(move |run| (strategy, run)))
    };
    let rows = || {
        runs().flat_map(|(strategy, run)| run.statements.iter().map(move |ledger| (strategy, run, ledger)))
    };
    let floats = |of: &dyn Fn(&Run<S>, &S::Ledger) -> f64| -> ArrayRef {
        let values = rows().map(|(_, run, ledger)| of(run, ledger));
        Arc::new(Float64Array::from_iter_values(values))
    };
    let texts = |of: &TextOf<'_, S>| -> ArrayRef {
        let values = rows().map(|(strategy, run, ledger)| of(strategy, run, ledger));
        Arc::new(values.collect::<StringArray>())
    };
    let mut columns: Vec<(String, ArrayRef, bool)> = Vec::new();
    let mut add = |name: &str, array: ArrayRef, nullable| columns.push((name.to_owned(), array, nullable));
    add("strategy", texts(&|strategy, _, _| Some(strategy.name.clone())), false);
    add("path", floats(&|run, _| run.path as f64), false);
    for (name, array) in table::time_columns(rows().map(|(.., ledger)| S::statement(ledger).time)) {
        add(name, array, false);
    }
    add("world", texts(&|_, run, _| Some(run.world.clone())), false);
    add("episode", floats(&|run, _| run.episode as f64), false);
    if S::HAS_ACTIONS {
        let named = |run: &Run<S>, ledger: &S::Ledger| run.actions.get(S::statement(ledger).step).cloned();
        let action = texts(&|_, run, ledger| named(run, ledger).filter(|name| !name.is_empty()));
        add("action", action, true);
    }
    if S::HAS_LEVELS {
        // As a walk-forward reads it.
        let levels = Float64Array::from_iter_values(runs().flat_map(|(_, run)| run.underlying_levels()));
        add("underlying", Arc::new(levels), false);
    }
    for (name, of) in S::columns(env) {
        add(name, floats(&|_, ledger| of(ledger)), false);
    }
    if S::HAS_PROFITS {
        let none = vec![0.0; S::PROFITS.len()];
        let profits: Vec<Vec<f64>> = runs()
            .flat_map(|(_, run)| std::iter::once(none.clone()).chain(run.profits()))
            .collect();
        let causes = profits.iter().map(Vec::len).min().unwrap_or(0);
        for (k, name) in S::PROFITS[..causes].iter().enumerate() {
            let values = Float64Array::from_iter_values(profits.iter().map(|by| by[k]));
            add(&format!("profit_{name}"), Arc::new(values), false);
        }
    }
    for (k, name) in S::weight_names(env).iter().enumerate() {
        let weights: Float64Array = runs()
            .flat_map(|(strategy, run)| {
                let shown = strategy.role == Role::Policy;
                let after = run.records.iter().map(|record| S::weights_after(record)[k]);
                std::iter::once(0.0)
                    .chain(after)
                    .map(move |weight| shown.then_some(weight))
            })
            .collect();
        add(name, Arc::new(weights), true);
    }
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}

/// A column of a trajectory, which not every market has.
pub(crate) fn optional<'a, T>(
    rows: &'a RecordBatch,
    name: &str,
    read: fn(&'a RecordBatch, &str) -> Result<T, StageError>,
) -> Result<Option<T>, StageError> {
    rows.column_by_name(name).map(|_| read(rows, name)).transpose()
}

/// The periods a year of a backtest's trajectory: stated in its metadata, or else by the times of a run.
pub(crate) fn periods(artifact: &Artifact, times: &[SnapshotTime]) -> Periods {
    let found = || PeriodsAYear::new(None, times.iter().map(|time| time.date), times);
    Periods::from(&PeriodsAYear::stated(&artifact.meta).unwrap_or_else(found))
}

/// The table of a backtest's trajectory.
pub(crate) fn read(store: &Store, artifact: &Artifact) -> Result<RecordBatch, StageError> {
    let entry = artifact
        .entry(FILE)
        .ok_or_else(|| StageError::new(format!("a trajectory has no file `{FILE}`")))?;
    table::from_parquet(store.blob(entry.blob)?)
}
