//! The outcome of the check.

use datasets::Date;
use serde::Serialize;

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The last date whose data stayed as it is.
    pub at: Date,
    /// What was replaced after it.
    pub sources: Vec<Perturbed>,
    /// What moved although it is of that date or before, in the order of the stages.
    pub moved: Vec<Moved>,
    /// What could not be compared.
    pub unchecked: Vec<Unchecked>,
    /// The stages that were left out, each with the reason.
    pub skipped: Vec<(String, String)>,
    /// How many tables were compared, and how many rows of them are of the date or before.
    pub tables: usize,
    /// The rows.
    pub rows: u64,
}

/// A source whose values were replaced.
#[derive(Clone, Debug, Serialize)]
pub struct Perturbed {
    /// `market.bars`, or `smooth: prices.csv` for a file.
    pub name: String,
    /// How many rows were changed.
    pub rows: u64,
    /// The stages that read it, directly or not, and ran again.
    pub stages: usize,
}

/// A column with values that moved although they are of the date or before.
#[derive(Clone, Debug, Serialize)]
pub struct Moved {
    /// Which source was changed.
    pub source: String,
    /// The stage.
    pub stage: String,
    #[serde(skip)]
    pub(crate) node: usize,
    /// The output, and the file of it where it has several.
    pub output: String,
    /// The column; `(rows)` where rows came or went.
    pub column: String,
    /// The first row that moved, counted from 0 among those of the file.
    pub row: usize,
    /// Its date, where it has one.
    pub date: Option<Date>,
    /// What it is about: its cells before the column of another type than numbers.
    pub about: String,
    /// The value as it was.
    pub was: String,
    /// The value as it became.
    pub became: String,
    /// How many rows moved.
    pub rows: usize,
    /// The stages from which it got values that had moved already; none where the look-ahead is its own.
    pub from: Vec<String>,
}

/// Something that could not be compared, or not be changed.
#[derive(Clone, Debug, Serialize)]
pub struct Unchecked {
    /// Which source was changed, or should have been.
    pub source: String,
    /// The stage.
    pub stage: String,
    /// The output, and the file of it.
    pub what: String,
    /// Why.
    pub reason: String,
}
