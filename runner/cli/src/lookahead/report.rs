//! The outcome of the check.

use datasets::Date;
use serde::Serialize;

/// The findings of the check.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The last date whose data is unchanged.
    pub at: Date,
    /// The perturbed sources.
    pub sources: Vec<Perturbed>,
    /// The values up to that date that changed nevertheless, in the order of the stages.
    pub moved: Vec<Moved>,
    /// The objects that could not be compared.
    pub unchecked: Vec<Unchecked>,
    /// The excluded stages, each with the reason.
    pub skipped: Vec<(String, String)>,
    /// The number of compared tables.
    pub tables: usize,
    /// The number of their rows up to the date.
    pub rows: u64,
}

/// A source with replaced values.
#[derive(Clone, Debug, Serialize)]
pub struct Perturbed {
    /// `market.bars`, or `smooth: prices.csv` for a file.
    pub name: String,
    /// The number of changed rows.
    pub rows: u64,
    /// The number of stages downstream of it, which ran again.
    pub stages: usize,
}

/// A column with values up to the date that changed nevertheless.
#[derive(Clone, Debug, Serialize)]
pub struct Moved {
    /// The name of the changed source.
    pub source: String,
    /// The stage.
    pub stage: String,
    #[serde(skip)]
    pub(crate) node: usize,
    /// The output, and its file if it has several.
    pub output: String,
    /// The column; `(rows)` if rows were added or removed.
    pub column: String,
    /// The first changed row, counted from 0 within the file.
    pub row: usize,
    /// Its date, if it has one.
    pub date: Option<Date>,
    /// Its identification: the cells of non-numeric columns before the column.
    pub about: String,
    /// The original value.
    pub was: String,
    /// The changed value.
    pub became: String,
    /// The number of changed rows.
    pub rows: usize,
    /// The upstream stages with changed values; empty if the look-ahead originates here.
    pub from: Vec<String>,
}

/// An object that could not be compared or changed.
#[derive(Clone, Debug, Serialize)]
pub struct Unchecked {
    /// The source that was changed, or should have been.
    pub source: String,
    /// The stage.
    pub stage: String,
    /// The output and its file.
    pub what: String,
    /// The reason.
    pub reason: String,
}
