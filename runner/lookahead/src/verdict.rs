//! The outcome of the check.

use super::change::Change;
use super::dates::{Confidence, Cut};
use super::uncheckable::Unchecked;
use runner_engine::exit;
use serde::Serialize;

/// The findings of the check.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// `passed`, `found` or `unchecked`.
    pub verdict: Outcome,
    /// The dates after which data was changed, in the order of the tests.
    pub cuts: Vec<Cut>,
    /// The confidence that the tested dates give about the remaining dates.
    pub confidence: Confidence,
    /// The changed sources.
    pub sources: Vec<Changed>,
    /// The values up to a date that changed with the data after it, in the order of the stages.
    pub moved: Vec<Moved>,
    /// The outputs and sources that could not be compared or changed, each with the reason.
    pub unchecked: Vec<Unchecked>,
    /// The stages that are judged by a rule in place of a comparison, each with the rule.
    pub rules: Vec<(String, String)>,
    /// The stages and outputs that were left out by request.
    pub skipped: Vec<String>,
    /// The inputs without dates, which are assumed to be known from the beginning.
    pub fixed: Vec<String>,
    /// The number of compared tables.
    pub tables: usize,
    /// The number of rows of these tables up to the dates.
    pub rows: u64,
    /// The number of cells that differ only by rounding.
    pub rounded: u64,
    /// The cost of the check.
    pub cost: Cost,
}

/// The outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Everything was compared, and nothing changed.
    Passed,
    /// At least one value changed.
    Found,
    /// Nothing changed, but something could not be compared.
    Unchecked,
}

impl Outcome {
    /// The exit code of `check lookahead`.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Passed => exit::DONE,
            Self::Found => exit::STAGE_FAILED,
            Self::Unchecked => exit::UNCHECKED,
        }
    }

    /// The name in events.
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Found => "found",
            Self::Unchecked => "unchecked",
        }
    }
}

/// The cost of the check.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Cost {
    /// The number of runs of the pipeline on changed data.
    pub runs: usize,
    /// The wall-clock time of these runs, in seconds.
    pub seconds: f64,
    /// The total duration of the checked stages when they were computed, in seconds.
    pub run_seconds: f64,
}

impl Cost {
    /// The duration of the check, as a multiple of the run's duration.
    pub fn factor(self) -> f64 {
        self.seconds / self.run_seconds.max(1e-3)
    }
}

/// A changed source.
#[derive(Clone, Debug, Serialize)]
pub struct Changed {
    /// The source's name: `market.bars`, or `smooth: prices.csv` for a file.
    pub name: String,
    /// The number of rows that were changed, over all dates and manners of change.
    pub rows: u64,
    /// The number of stages downstream of the source, which ran again.
    pub stages: usize,
}

/// A column with values up to a date that changed with the data after it.
#[derive(Clone, Debug, Serialize)]
pub struct Moved {
    /// The stage.
    pub stage: String,
    #[serde(skip)]
    pub(crate) node: usize,
    /// The output, and its file if it has several.
    pub output: String,
    /// The column's name; `(rows)` if rows were added or removed, `(order)` if they changed places.
    pub column: String,
    /// The first tested date at which the change was found.
    pub at: String,
    /// The manner of the change.
    pub change: Change,
    /// The first changed row, counted from 0 within the file.
    pub row: usize,
    /// The date of the changed row, if it has one.
    pub date: Option<String>,
    /// The cells that identify the row, from columns such as `symbol`.
    pub about: String,
    /// The original value.
    pub was: String,
    /// The changed value.
    pub became: String,
    /// The number of changed rows.
    pub rows: usize,
    /// The number of dates at which the change was found.
    pub dates: usize,
    /// The changed sources that the stage descends from.
    pub source: String,
    /// The upstream stages with changed values; empty if the look-ahead originates here.
    pub from: Vec<String>,
}
