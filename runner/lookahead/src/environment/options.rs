//! The tables of `env/options`: its files number contracts within a part, and a part spans the date of a cut.

use super::super::moment::{self, Stamp};
use super::super::read::Table;
use super::{World, days, table};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, UInt32Type};
use arrow_array::{Array, ArrayRef, Date32Array, Float64Array, Int32Array, RecordBatch, StringArray};
use arrow_schema::DataType;
use datasets::Date;
use std::sync::Arc;

/// The tables of a world: its snapshots, and the quotes of its contracts.
///
/// # Errors
/// When a file is not as `env/options` writes it.
pub(super) fn tables(world: &World) -> Result<[Table; 2], String> {
    let wrong = || "is not as `env/options` writes it".to_owned();
    let mut snapshots = Vec::new();
    let mut quotes = Quotes::default();
    for (of_part, paths) in &world.parts {
        let contracts = contracts(paths).ok_or_else(wrong)?;
        let times = stamps(of_part).ok_or_else(wrong)?;
        snapshots.push(with_contracts(of_part, &contracts).ok_or_else(wrong)?);
        quotes.add(paths, contracts, &times).ok_or_else(wrong)?;
    }
    let schema = snapshots.first().map(RecordBatch::schema).ok_or("has no snapshots")?;
    let snapshots =
        arrow_select::concat::concat_batches(&schema, &snapshots).map_err(|err| err.to_string())?;
    let times = stamps(&snapshots).unwrap_or_default();
    let (times_of_quotes, quotes) = quotes.table()?;
    Ok([
        table("snapshots", snapshots, times),
        table("contracts", quotes, times_of_quotes),
    ])
}

/// The times of snapshots: instants where there are several a day.
fn stamps(snapshots: &RecordBatch) -> Option<Vec<Stamp>> {
    let of_days = || {
        Some(
            days(snapshots, "date")?
                .into_iter()
                .map(|day| Stamp::day(Date(day)))
                .collect(),
        )
    };
    moment::instants(snapshots).or_else(of_days)
}

/// The terms of the contracts of a part.
fn contracts(paths: &RecordBatch) -> Option<Vec<String>> {
    let roots = paths.column_by_name("root")?.as_string_opt::<i32>()?;
    let expiries = days(paths, "expiry")?;
    let strikes = paths.column_by_name("strike")?.as_primitive_opt::<Float64Type>()?;
    let calls = paths.column_by_name("call")?.as_boolean_opt()?;
    let contract = |i: usize| {
        let right = if calls.value(i) { "call" } else { "put" };
        format!("{} {} {} {right}", roots.value(i), Date(expiries[i]), strikes.value(i))
    };
    Some((0..paths.num_rows()).map(contract).collect())
}

/// Snapshots with the terms of contracts in place of their numbers.
fn with_contracts(snapshots: &RecordBatch, contracts: &[String]) -> Option<RecordBatch> {
    let schema = snapshots.schema();
    let mut columns: Vec<(String, ArrayRef)> = Vec::new();
    for (field, column) in schema.fields().iter().zip(snapshots.columns()) {
        let numbers = match column.data_type() {
            DataType::FixedSizeList(..) => column
                .as_fixed_size_list()
                .values()
                .as_primitive_opt::<Int32Type>()
                .cloned(),
            _ => None,
        };
        let array = match numbers {
            None => column.clone(),
            Some(numbers) => {
                let width = numbers.len() / snapshots.num_rows().max(1);
                let name = |number: &i32| {
                    usize::try_from(*number)
                        .ok()
                        .and_then(|i| contracts.get(i))
                        .map_or("-", String::as_str)
                };
                let row = |chunk: &[i32]| chunk.iter().map(name).collect::<Vec<_>>().join("; ");
                Arc::new(StringArray::from_iter_values(
                    Int32Array::values(&numbers).chunks(width.max(1)).map(row),
                ))
            }
        };
        columns.push((field.name().clone(), array));
    }
    RecordBatch::try_from_iter(columns).ok()
}

/// The values of a quote, in the order of the files.
const VALUES: [&str; 8] = ["bid", "ask", "mark", "delta", "gamma", "vega", "theta", "source"];

/// The quotes of the contracts of all parts.
#[derive(Default)]
struct Quotes {
    contracts: Vec<String>,
    /// The time and the contract of each quote.
    keys: Vec<(Stamp, u32)>,
    values: Vec<[f64; VALUES.len()]>,
}

impl Quotes {
    /// Adds those of a part; `None` if it is not as `env/options` writes it.
    fn add(&mut self, paths: &RecordBatch, contracts: Vec<String>, times: &[Stamp]) -> Option<()> {
        let firsts = paths.column_by_name("first")?.as_primitive_opt::<UInt32Type>()?;
        let lists = paths.column_by_name("entries")?.as_list_opt::<i32>()?;
        let entries = lists.values().as_fixed_size_list_opt()?;
        let width = usize::try_from(entries.value_length()).ok()?;
        let values = entries.values().as_primitive_opt::<Float64Type>()?.values();
        let offsets = lists.value_offsets();
        for i in 0..contracts.len() {
            let (from, to) = (usize::try_from(offsets[i]).ok()?, usize::try_from(offsets[i + 1]).ok()?);
            let contract = u32::try_from(self.contracts.len() + i).ok()?;
            for (t, entry) in (from..to).enumerate() {
                let values = values.get(entry * width..(entry + 1) * width)?;
                let mut quote = [f64::NAN; VALUES.len()];
                quote.iter_mut().zip(values).for_each(|(to, value)| *to = *value);
                self.keys.push((*times.get(firsts.value(i) as usize + t)?, contract));
                self.values.push(quote);
            }
        }
        self.contracts.extend(contracts);
        Some(())
    }

    /// The times of the quotes and their table, by time and contract.
    fn table(self) -> Result<(Vec<Stamp>, RecordBatch), String> {
        let mut by_name: Vec<usize> = (0..self.contracts.len()).collect();
        by_name.sort_by_key(|&i| &self.contracts[i]);
        let mut ranks = vec![0; by_name.len()];
        for (rank, &contract) in by_name.iter().enumerate() {
            ranks[contract] = rank;
        }
        let mut order: Vec<usize> = (0..self.keys.len()).collect();
        order.sort_by_key(|&i| (self.keys[i].0, ranks[self.keys[i].1 as usize]));
        let times: Vec<Stamp> = order.iter().map(|&i| self.keys[i].0).collect();
        let days = times.iter().map(|time| time.date().0);
        let contracts = order.iter().map(|&i| &self.contracts[self.keys[i].1 as usize]);
        let mut columns: Vec<(&str, ArrayRef)> = vec![
            ("date", Arc::new(Date32Array::from_iter_values(days))),
            ("contract", Arc::new(StringArray::from_iter_values(contracts))),
        ];
        for (place, name) in VALUES.into_iter().enumerate() {
            let values = order.iter().map(|&i| self.values[i][place]);
            columns.push((name, Arc::new(Float64Array::from_iter_values(values))));
        }
        Ok((
            times,
            RecordBatch::try_from_iter(columns).map_err(|err| err.to_string())?,
        ))
    }
}
