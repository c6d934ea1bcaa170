//! Features: groups of columns computed row by row.

use super::over_splits::Scale;
use super::state::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rows from which features are computed.
pub trait Rows {
    /// The number of rows.
    fn count(&self) -> usize;
}

impl<T> Rows for Vec<T> {
    fn count(&self) -> usize {
        self.len()
    }
}

impl Rows for Bars {
    fn count(&self) -> usize {
        self.close.len()
    }
}

/// A group of columns computed together from rows in the form `R`.
pub trait Feature<R: Rows>: Send + Sync {
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

    /// Writes the feature's values over `rows` to `columns`, one slice of as many values as rows for each
    /// column; NaN during the warm-up. Starts from `state`, and leaves the state after the last row in it. A
    /// row with a missing input gives NaN and does not change the state. The values are bit for bit the same
    /// however the rows are cut into calls.
    fn write(&self, state: &mut State, rows: &R, columns: &mut [&mut [f64]]);

    /// The feature's values over `rows`, column by column, as [`Feature::write`] writes them.
    fn over(&self, state: &mut State, rows: &R) -> Vec<Vec<f64>> {
        let mut columns = vec![vec![0.0; rows.count()]; self.columns().len()];
        let mut slices: Vec<&mut [f64]> = columns.iter_mut().map(Vec::as_mut_slice).collect();
        self.write(state, rows, &mut slices);
        columns
    }
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
