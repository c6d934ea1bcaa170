//! The tables of `env/options`: its files number contracts within a part, and a part may span the date of a
//! cut.

use super::{World, days, element, keys, stamps};
use crate::moment::Stamp;
use crate::table::Table;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, UInt32Type};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_schema::DataType;
use arrow_select::concat::{concat, concat_batches};
use datasets::Date;
use std::sync::Arc;

/// The values of a quote, in the order in which the files store them.
const VALUES: [&str; 8] = ["bid", "ask", "mark", "delta", "gamma", "vega", "theta", "source"];

/// The tables of a world: its snapshots, and the quotes of its contracts by time and contract. `None` if a
/// file does not have the form that `env/options` writes.
pub(super) fn tables(world: &World) -> Option<Vec<Table>> {
    let (mut snapshots, mut contracts) = (Vec::new(), Vec::new());
    for (rows, paths) in &world.parts {
        let names = names(paths)?;
        snapshots.push(with_contracts(rows, &names)?);
        contracts.push(names);
    }
    // The time, the contract and the position of each quote.
    let mut quotes: Vec<(Stamp, &str, usize)> = Vec::new();
    let mut values: Vec<&dyn Array> = Vec::new();
    let (mut before, mut width) = (0, 1);
    for ((rows, paths), contracts) in world.parts.iter().zip(&contracts) {
        let times = stamps(rows)?;
        let firsts = paths.column_by_name("first")?.as_primitive_opt::<UInt32Type>()?;
        let lists = paths.column_by_name("entries")?.as_list_opt::<i32>()?;
        let entries = lists.values().as_fixed_size_list_opt()?;
        for (i, contract) in contracts.iter().enumerate() {
            let [from, to] = [i, i + 1].map(|i| lists.value_offsets()[i].cast_unsigned() as usize);
            for (t, entry) in (from..to).enumerate() {
                quotes.push((*times.get(firsts.value(i) as usize + t)?, contract, before + entry));
            }
        }
        before += entries.len();
        width = entries.value_length().cast_unsigned() as usize;
        values.push(entries.values().as_ref());
    }
    quotes.sort_unstable();
    let values = concat(&values).ok()?;
    let days = quotes.iter().map(|quote| quote.0.date().0);
    let mut quote_columns = keys("contract", days, quotes.iter().map(|quote| quote.1));
    for (place, name) in VALUES.into_iter().enumerate().take(width) {
        let value = element(&values, quotes.iter().map(|quote| quote.2 * width + place))?;
        quote_columns.push((name.to_owned(), value));
    }
    let snapshots = concat_batches(&snapshots.first()?.schema(), &snapshots).ok()?;
    let times = stamps(&snapshots)?;
    Some(vec![
        Table::named("snapshots", snapshots, times),
        Table::named(
            "contracts",
            RecordBatch::try_from_iter(quote_columns).ok()?,
            quotes.iter().map(|quote| quote.0).collect(),
        ),
    ])
}

/// The terms of the contracts of a part.
fn names(paths: &RecordBatch) -> Option<Vec<String>> {
    let roots = paths.column_by_name("root")?.as_string_opt::<i32>()?;
    let expiries = days(paths, "expiry")?;
    let strikes = paths.column_by_name("strike")?.as_primitive_opt::<Float64Type>()?;
    let calls = paths.column_by_name("call")?.as_boolean_opt()?;
    let name = |i: usize| {
        let right = if calls.value(i) { "call" } else { "put" };
        format!("{} {} {} {right}", roots.value(i), Date(expiries[i]), strikes.value(i))
    };
    Some((0..paths.num_rows()).map(name).collect())
}

/// The snapshots, with contracts' terms in place of their numbers.
fn with_contracts(snapshots: &RecordBatch, contracts: &[String]) -> Option<RecordBatch> {
    let schema = snapshots.schema();
    let columns = schema.fields().iter().zip(snapshots.columns()).map(|(field, column)| {
        let DataType::FixedSizeList(_, width) = column.data_type() else {
            return (field.name(), column.clone());
        };
        let values = column.as_fixed_size_list().values();
        let Some(numbers) = values.as_primitive_opt::<Int32Type>() else {
            return (field.name(), column.clone());
        };
        let name = |number: &i32| {
            usize::try_from(*number)
                .ok()
                .and_then(|i| contracts.get(i))
                .map_or("-", String::as_str)
        };
        let row = |numbers: &[i32]| numbers.iter().map(name).collect::<Vec<_>>().join("; ");
        let rows = numbers
            .values()
            .chunks((*width).max(1).cast_unsigned() as usize)
            .map(row);
        (field.name(), Arc::new(StringArray::from_iter_values(rows)) as ArrayRef)
    });
    RecordBatch::try_from_iter(columns).ok()
}
