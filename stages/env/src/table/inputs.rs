//! The stage's inputs, read into a table by symbol.

use super::source::{SymbolRows, TableSource};
use stages_core::dataset::DataSet;
use stages_core::{Context, StageError};

/// The inputs, in the order in which they are joined: the rows are those of the first.
pub(super) const INPUTS: [&str; 2] = ["table", "features"];

/// Reads the inputs, and joins their columns by symbol and instant to the rows of the first. A further input
/// of one symbol that the first does not hold is of every symbol.
pub(super) fn read(context: &Context) -> Result<TableSource, StageError> {
    let mut joined: Option<TableSource> = None;
    for port in INPUTS {
        for input in context.list(port) {
            context.check_cancelled()?;
            let source = TableSource::by_symbol(&DataSet::open(input)?.read_all(&context.store)?)?;
            match &mut joined {
                None => joined = Some(source),
                Some(first) => join(first, source)?,
            }
        }
    }
    joined.ok_or_else(|| StageError::new("no table is connected").hint("connect `table` or `features`"))
}

/// Adds the columns of `other` to the rows of `first`.
fn join(first: &mut TableSource, other: TableSource) -> Result<(), StageError> {
    if let Some(name) = other.columns.iter().find(|name| first.columns.contains(name)) {
        return Err(StageError::new(format!("the column `{name}` comes from two inputs"))
            .hint("leave it out of one of them, or rename it"));
    }
    let is_intraday = |source: &TableSource| source.symbols.iter().any(SymbolRows::has_instants);
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
