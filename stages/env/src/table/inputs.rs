//! The stage's inputs, read into a table by symbol.

use super::source::{SymbolRows, TableSource};
use crate::env_artifact::is_key;
use arrow_array::RecordBatch;
use arrow_schema::DataType;
use datasets::SnapshotTime;
use stages_core::dataset::{self, DataSet};
use stages_core::{Context, StageError, table};
use std::collections::BTreeMap;

/// The inputs, in the order in which they are joined: the rows are those of the first.
pub(super) const INPUTS: [&str; 2] = ["table", "features"];

/// Reads the inputs, and joins their columns by symbol and instant to the rows of the first. A further input
/// of one symbol that the first does not hold is of every symbol.
pub(super) fn read(context: &Context) -> Result<TableSource, StageError> {
    let mut joined: Option<TableSource> = None;
    for port in INPUTS {
        for input in context.list(port) {
            context.check_cancelled()?;
            let source = by_symbol(&DataSet::open(input)?.read_all(&context.store)?)?;
            match &mut joined {
                None => joined = Some(source),
                Some(first) => join(first, source)?,
            }
        }
    }
    joined.ok_or_else(|| StageError::new("no table is connected").hint("connect `table` or `features`"))
}

/// The rows of a data set by symbol.
fn by_symbol(batches: &[RecordBatch]) -> Result<TableSource, StageError> {
    let mut columns: Vec<String> = Vec::new();
    for batch in batches {
        for field in batch.schema().fields() {
            if !is_key(field.name())
                && *field.data_type() == DataType::Float64
                && !columns.contains(field.name())
            {
                columns.push(field.name().clone());
            }
        }
    }
    let mut found: BTreeMap<String, SymbolRows> = BTreeMap::new();
    for batch in batches {
        let times = table::snapshot_times(batch)?;
        let values: Vec<Vec<f64>> = columns
            .iter()
            .map(|name| table::floats_if_any(batch, name))
            .collect::<Result<_, _>>()?;
        for (symbol, rows) in dataset::symbol_rows(batch)? {
            let of_symbol = found.entry(symbol.to_owned()).or_insert_with(|| SymbolRows {
                symbol: symbol.to_owned(),
                times: Vec::new(),
                values: vec![Vec::new(); columns.len()],
            });
            of_symbol.times.extend_from_slice(&times[rows.clone()]);
            for (all, part) in of_symbol.values.iter_mut().zip(&values) {
                all.extend_from_slice(&part[rows.clone()]);
            }
        }
    }
    let mut symbols: Vec<SymbolRows> = found.into_values().collect();
    symbols.iter_mut().for_each(sort);
    Ok(TableSource { columns, symbols })
}

/// Puts rows in the order of their instants; those of one keep theirs.
fn sort(rows: &mut SymbolRows) {
    if rows.times.is_sorted() {
        return;
    }
    let mut order: Vec<usize> = (0..rows.times.len()).collect();
    order.sort_by_key(|&row| rows.times[row]);
    rows.times = order.iter().map(|&row| rows.times[row]).collect();
    for values in &mut rows.values {
        *values = order.iter().map(|&row| values[row]).collect();
    }
}

/// Adds the columns of `other` to the rows of `first`.
fn join(first: &mut TableSource, other: TableSource) -> Result<(), StageError> {
    if let Some(name) = other.columns.iter().find(|name| first.columns.contains(name)) {
        return Err(StageError::new(format!("the column `{name}` comes from two inputs"))
            .hint("leave it out of one of them, or rename it"));
    }
    let is_intraday = |source: &TableSource| source.symbols.iter().any(|rows| has_instants(&rows.times));
    StageError::new("one input has a row a day, and another has instants")
        .hint("make them of the same rows")
        .when(is_intraday(first) != is_intraday(&other))?;
    let holds =
        |source: &TableSource, symbol: &str| source.symbols.iter().position(|rows| rows.symbol == symbol);
    let of_all = match other.symbols.as_slice() {
        [only] if holds(first, &only.symbol).is_none() => Some(0),
        _ => None,
    };
    let places: Vec<Option<usize>> = first
        .symbols
        .iter()
        .map(|rows| of_all.or_else(|| holds(&other, &rows.symbol)))
        .collect();
    if places.iter().all(Option::is_none) {
        let names = |source: &TableSource| {
            let names: Vec<&str> = source.symbols.iter().map(|rows| rows.symbol.as_str()).take(5).collect();
            names.join(", ")
        };
        return Err(StageError::new(format!(
            "two inputs have no symbol in common: one holds {}, another {}",
            names(first),
            names(&other)
        ))
        .hint("symbols are compared as they are written"));
    }
    for (rows, place) in first.symbols.iter_mut().zip(places) {
        let theirs = place.map(|place| &other.symbols[place]);
        let at: Vec<Option<usize>> = rows
            .times
            .iter()
            .map(|time| theirs?.times.binary_search(time).ok())
            .collect();
        for column in 0..other.columns.len() {
            let value = |row: &Option<usize>| match (row, theirs) {
                (Some(row), Some(theirs)) => theirs.values[column][*row],
                _ => f64::NAN,
            };
            rows.values.push(at.iter().map(value).collect());
        }
    }
    first.columns.extend(other.columns);
    Ok(())
}

/// Returns whether rows have instants rather than days.
pub(super) fn has_instants(times: &[SnapshotTime]) -> bool {
    times.first().is_some_and(|time| time.instant.is_some())
}
