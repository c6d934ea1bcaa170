//! Features: groups of columns computed row after row.

use super::over_splits::Scale;
use super::state::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A group of columns computed together from rows in the form `R`.
pub trait Feature<R>: Send + Sync {
    /// The names of its columns.
    fn columns(&self) -> Vec<String>;

    /// The columns of the source that it reads.
    fn inputs(&self) -> Vec<&'static str>;

    /// The change of its values with the scale of prices.
    fn scale(&self) -> Scale {
        Scale::Power(0)
    }

    /// The state before the first row.
    fn start(&self) -> State;

    /// Its values over rows, column by column, from `state` on, which becomes the state after them; NaN in
    /// the warm-up. A row that lacks an input gives NaN and leaves the state as it is. Any cut of the rows
    /// gives the same bits.
    fn over(&self, state: &mut State, rows: &R) -> Vec<Vec<f64>>;
}

/// Daily bars, column by column; NaN where a value is missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bars {
    /// First prices.
    pub open: Vec<f64>,
    /// Highest prices.
    pub high: Vec<f64>,
    /// Lowest prices.
    pub low: Vec<f64>,
    /// Last prices.
    pub close: Vec<f64>,
    /// Volumes.
    pub volume: Vec<f64>,
    /// Shares now for one before all splits, by which prices are multiplied and volumes divided; empty where
    /// prices are as they are.
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
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::High => "high",
            Self::Low => "low",
            Self::Close => "close",
            Self::Volume => "volume",
        }
    }

    /// It, of `bars`.
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

/// Columns by a function that takes one row after the other and writes its values over NaN.
pub fn row_by_row<R, const N: usize>(rows: &[R], mut update: impl FnMut(&R, &mut [f64; N])) -> Vec<Vec<f64>> {
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
