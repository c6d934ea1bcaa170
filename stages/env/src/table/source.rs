//! A table by symbol, from which the tables of environments are built.

use datasets::SnapshotTime;

/// Rows of symbols, all with the same columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableSource {
    /// The names of the columns of numbers `[C]`.
    pub columns: Vec<String>,
    /// The symbols, in the order of their names.
    pub symbols: Vec<SymbolRows>,
}

/// The rows of a symbol, in the order of their instants.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SymbolRows {
    /// The name.
    pub symbol: String,
    /// The instants `[T]`.
    pub times: Vec<SnapshotTime>,
    /// The values `[C][T]`; NaN where there is none.
    pub values: Vec<Vec<f64>>,
}
