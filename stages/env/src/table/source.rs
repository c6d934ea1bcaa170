//! A table by symbol, from which the tables of environments are built.

use crate::env_artifact::is_key;
use arrow_array::RecordBatch;
use arrow_schema::DataType;
use datasets::SnapshotTime;
use stages_core::{StageError, dataset, table};
use std::collections::BTreeMap;

/// Rows of symbols, all with the same columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableSource {
    /// The names of the columns of numbers `[C]`.
    pub columns: Vec<String>,
    /// The symbols, in the order of their names.
    pub symbols: Vec<SymbolRows>,
}

impl TableSource {
    /// The rows of a data set by symbol.
    pub(crate) fn by_symbol(batches: &[RecordBatch]) -> Result<Self, StageError> {
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
        symbols.iter_mut().for_each(SymbolRows::sort);
        Ok(Self { columns, symbols })
    }
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

impl SymbolRows {
    /// Returns whether rows have instants rather than days.
    pub(crate) fn has_instants(&self) -> bool {
        self.times.first().is_some_and(|time| time.instant.is_some())
    }

    /// Puts rows in the order of their instants; those of one keep theirs.
    fn sort(&mut self) {
        if self.times.is_sorted() {
            return;
        }
        let mut order: Vec<usize> = (0..self.times.len()).collect();
        order.sort_by_key(|&row| self.times[row]);
        self.times = order.iter().map(|&row| self.times[row]).collect();
        for values in &mut self.values {
            *values = order.iter().map(|&row| values[row]).collect();
        }
    }
}
