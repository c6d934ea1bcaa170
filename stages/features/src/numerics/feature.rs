//! Features: groups of columns computed row by row.

use super::over_splits::Scale;
use super::state::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A group of columns computed together from rows in the form `R`.
pub trait Feature<R>: Send + Sync {
    /// The names of the feature's columns.
    fn columns(&self) -> Vec<String>;

    /// The source columns that the feature reads.
    fn inputs(&self) -> Vec<&'static str>;

    /// The change of the feature's values with the scale of prices.
    fn scale(&self) -> Scale {
        Scale::Power(0)
    }

    /// The state before the first row.
    fn start(&self) -> State;

    /// The feature's values over `rows`, column by column; NaN during the warm-up. Starts from `state`, and
    /// leaves the state after the last row in it. A row with a missing input gives NaN and does not change
    /// the state. The values are bit for bit the same however the rows are cut into calls.
    fn over(&self, state: &mut State, rows: &R) -> Vec<Vec<f64>>;
}

/// Daily bars, column by column; NaN where a value is missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bars {
    /// The opening prices.
    pub open: Vec<f64>,
    /// The highest prices.
    pub high: Vec<f64>,
    /// The lowest prices.
    pub low: Vec<f64>,
    /// The closing prices.
    pub close: Vec<f64>,
    /// The volumes.
    pub volume: Vec<f64>,
    /// The number of shares now for each share before all splits, by which prices are multiplied and volumes
    /// divided; empty if prices are left unadjusted.
    pub shares: Vec<f64>,
}

/// A column of bars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Column {
    /// First price.
    Open,
    /// Highest price.
    High,
    /// Lowest price.
    Low,
    /// Last price.
    Close,
    /// Volume.
    Volume,
}

impl Column {
    /// The column's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::High => "high",
            Self::Low => "low",
            Self::Close => "close",
            Self::Volume => "volume",
        }
    }

    /// The values of this column in `bars`.
    pub fn of(self, bars: &Bars) -> &[f64] {
        match self {
            Self::Open => &bars.open,
            Self::High => &bars.high,
            Self::Low => &bars.low,
            Self::Close => &bars.close,
            Self::Volume => &bars.volume,
        }
    }
}

/// Builds columns by calling `update` on one row after another; values that it does not write are NaN.
pub(super) fn row_by_row<R, const N: usize>(
    rows: &[R],
    mut update: impl FnMut(&R, &mut [f64; N]),
) -> Vec<Vec<f64>> {
    let mut columns = vec![Vec::with_capacity(rows.len()); N];
    for row in rows {
        let mut out = [f64::NAN; N];
        update(row, &mut out);
        for (column, value) in columns.iter_mut().zip(out) {
            column.push(value);
        }
    }
    columns
}
