//! Features as state machines: each takes one row after the other and gives its values from what it has seen so far, so that it can't look
//! ahead. Nothing here knows of stages or the cache.

pub mod smile;
pub mod surface;
pub mod technical;
pub mod volatility;
mod window;

/// All that a feature remembers of the rows before: a few numbers, stored and restored bit for bit.
pub type State = Vec<f64>;

/// A group of columns computed together from rows of type `R`.
pub trait Feature<R: ?Sized>: Send + Sync {
    /// The names of its columns.
    fn columns(&self) -> Vec<String>;

    /// The columns of the source that it reads.
    fn inputs(&self) -> Vec<&'static str>;

    /// The state before the first row.
    fn start(&self) -> State;

    /// Takes a row and writes its values to `out`, NaN where there are none yet. A row that lacks an input gives NaN and leaves the state as it is.
    fn update(&self, state: &mut State, row: &R, out: &mut [f64]);
}

/// A day's bar; NaN where a value is missing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// First price.
    pub open: f64,
    /// Highest price.
    pub high: f64,
    /// Lowest price.
    pub low: f64,
    /// Last price.
    pub close: f64,
}

/// The values of a feature over rows, from `state` on, column by column; `state` is left as it is after them.
pub fn over<R>(feature: &dyn Feature<R>, state: &mut State, rows: &[R]) -> Vec<Vec<f64>> {
    let width = feature.columns().len();
    let mut columns = vec![Vec::with_capacity(rows.len()); width];
    let mut out = vec![f64::NAN; width];
    for row in rows {
        out.fill(f64::NAN);
        feature.update(state, row, &mut out);
        for (column, value) in columns.iter_mut().zip(&out) {
            column.push(*value);
        }
    }
    columns
}
