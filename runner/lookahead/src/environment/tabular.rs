//! The rows of `env/table`: columns of values for all symbols of a world, each named.

use super::super::moment::Stamp;
use super::super::read::Table;
use super::{World, days, table as dated};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{ArrayRef, Date32Array, Float64Array, RecordBatch};
use arrow_schema::DataType;
use datasets::Date;
use serde_json::Value;
use std::sync::Arc;

fn names(list: &Value) -> Vec<&str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// The rows of a world.
///
/// # Errors
/// When its file is not as `env/table` writes it.
pub(super) fn table(spec: &Value, world: &World) -> Result<Table, String> {
    read(spec, world).ok_or_else(|| "is not as `env/table` writes it".to_owned())
}

fn read(spec: &Value, world: &World) -> Option<Table> {
    let (rows, _) = world.parts.first()?;
    let (dates, symbols) = (days(rows, "date")?, names(&world.spec["symbols"]));
    let stamps: Vec<Stamp> = match rows.column_by_name("instant") {
        None => dates.iter().map(|&day| Stamp::day(Date(day))).collect(),
        Some(instants) => {
            let values = instants.as_fixed_size_list_opt()?.values();
            let values = values.as_primitive_opt::<Int64Type>()?.values();
            values.iter().map(|&at| Stamp::instant(at)).collect()
        }
    };
    let mut columns: Vec<(String, ArrayRef)> = vec![("date".to_owned(), Arc::new(Date32Array::from(dates)))];
    for (column, by_symbol) in [("observed", true), ("paying", symbols.len() > 1), ("terms", false)] {
        let Some(list) = rows.column_by_name(column) else {
            continue;
        };
        let DataType::FixedSizeList(_, width) = list.data_type() else {
            return None;
        };
        let width = usize::try_from(*width).ok()?;
        let flat = arrow_cast::cast(list.as_fixed_size_list().values(), &DataType::Float64).ok()?;
        let flat = flat.as_primitive_opt::<Float64Type>()?.values().clone();
        let own = names(&spec[column]);
        for place in 0..width {
            let value = (0..rows.num_rows()).map(|row| flat[row * width + place]);
            let name = own.get(place % own.len().max(1))?;
            let symbol = match by_symbol && symbols.len() > 1 {
                true => format!("{} ", symbols.get(place / own.len())?),
                false => String::new(),
            };
            columns.push((
                format!("{column} {symbol}{name}"),
                Arc::new(Float64Array::from_iter_values(value)),
            ));
        }
    }
    Some(dated("rows", RecordBatch::try_from_iter(columns).ok()?, stamps))
}
