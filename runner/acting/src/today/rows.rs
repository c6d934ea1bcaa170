//! Rows by symbol and time.

use super::Followed;
use datasets::SnapshotTime;
use runner_engine::Failure;
use stages_core::dataset::{Partition, symbol_rows};
use stages_core::{StageError, table};
use std::collections::BTreeMap;

/// The days before the new rows that are read of a history: of chains, which are large, fewer.
pub(super) const DAYS: i32 = 400;
pub(super) const DAYS_OF_CHAINS: i32 = 40;

/// The rows of a symbol: their values by time, in the order of the columns.
pub(super) type Rows = BTreeMap<SnapshotTime, Vec<f64>>;

/// The rows of a data set, by symbol.
pub(super) type BySymbol = BTreeMap<String, Rows>;

impl Followed<'_> {
    /// Reads partitions, with the values of `columns`: those of the first partition where there are none yet.
    /// Of a chain a row is a snapshot, with the sums of its contracts; of rates a maturity is a symbol.
    pub(super) fn read<'p>(
        &self,
        partitions: impl Iterator<Item = &'p Partition>,
        columns: &mut Vec<String>,
    ) -> Result<BySymbol, Failure> {
        let mut all = BySymbol::new();
        for partition in partitions {
            let batch = partition.read(self.store)?;
            let times = table::snapshot_times(&batch)?;
            let is_chain = batch.column_by_name("strike").is_some();
            if columns.is_empty() {
                let schema = batch.schema();
                let floats = schema
                    .fields()
                    .iter()
                    .filter(|field| table::floats(&batch, field.name()).is_ok());
                let floats = floats.map(|field| field.name().clone());
                columns.extend(floats.filter(|name| name != "tenor_years"));
            }
            let values = columns.iter().map(|name| table::floats_if_any(&batch, name));
            let values: Vec<Vec<f64>> = values.collect::<Result<_, StageError>>()?;
            let tenors = table::floats_if_any(&batch, "tenor_years")?;
            let symbols: Vec<(String, std::ops::Range<usize>)> = match batch.column_by_name("symbol") {
                Some(_) => symbol_rows(&batch)?
                    .into_iter()
                    .map(|(name, rows)| (name.to_owned(), rows))
                    .collect(),
                None => (0..tenors.len())
                    .map(|i| (format!("{} years", tenors[i]), i..i + 1))
                    .collect(),
            };
            for (symbol, rows) in symbols {
                let own = all.entry(symbol).or_default();
                for i in rows.filter(|i| times[*i].date <= self.at) {
                    let row = || values.iter().map(|column| column[i]).collect::<Vec<f64>>();
                    match own.get_mut(&times[i]) {
                        Some(sums) if is_chain => {
                            for ((sum, value), name) in sums.iter_mut().zip(row()).zip(&*columns) {
                                match name.as_str() {
                                    "underlying" if sum.is_nan() => *sum = value,
                                    "underlying" => {}
                                    _ if sum.is_nan() => *sum = value,
                                    _ if value.is_nan() => {}
                                    _ => *sum += value,
                                }
                            }
                        }
                        _ => drop(own.insert(times[i], row())),
                    }
                }
            }
        }
        Ok(all)
    }
}

pub(super) fn same(a: f64, b: f64) -> bool {
    a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

pub(super) fn all_same(a: &[f64], b: &[f64]) -> bool {
    a.iter().zip(b).all(|(a, b)| same(*a, *b))
}
