//! The tables of `env/stocks`: its files have a column of values for all symbols, of which those that are
//! listed later are not there yet.

use super::super::moment::Stamp;
use super::super::read::Table;
use super::{World, days, table};
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, Date32Array, Float64Array, RecordBatch, StringArray};
use arrow_schema::DataType;
use datasets::Date;
use serde_json::Value;
use std::sync::Arc;

/// Columns by date alone; others have values for each symbol.
const BY_DATE: [&str; 4] = ["rate", "risk", "features", "hedge"];

fn names(list: &Value) -> Vec<&str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// The values of a column, and their number by date.
fn values(column: &ArrayRef, rows: usize) -> Option<(Vec<f64>, usize)> {
    let (flat, width) = match column.data_type() {
        DataType::FixedSizeList(_, width) => (
            column.as_fixed_size_list().values().clone(),
            usize::try_from(*width).ok()?,
        ),
        _ => (column.clone(), 1),
    };
    let floats = arrow_cast::cast(&flat, &DataType::Float64).ok()?;
    let floats = floats.as_primitive_opt::<Float64Type>()?.values().to_vec();
    (floats.len() == rows * width).then_some((floats, width))
}

/// True for each date and symbol `[T, N]` at which the symbol is or was listed.
fn listed(panel: &RecordBatch, symbols: usize) -> Option<Vec<bool>> {
    let of = |name: &str| Some(values(panel.column_by_name(name)?, panel.num_rows())?.0);
    let known: Vec<bool> = of("mark")?
        .iter()
        .zip(of("status")?)
        .map(|(mark, status)| *mark != 0.0 || status != 0.0)
        .collect();
    (known.len() == panel.num_rows() * symbols).then_some(known)
}

/// The tables of a world: values by date, values by date and symbol, and corporate actions.
///
/// # Errors
/// When a file is not as `env/stocks` writes it.
pub(super) fn tables(spec: &Value, world: &World) -> Result<Vec<Table>, String> {
    read(spec, world).ok_or_else(|| "is not as `env/stocks` writes it".to_owned())
}

fn read(spec: &Value, world: &World) -> Option<Vec<Table>> {
    let (panel, _) = world.parts.first()?;
    let (dates, symbols) = (days(panel, "date")?, names(&world.spec["symbols"]));
    let n = symbols.len();
    let listed = listed(panel, n)?;
    let cells: Vec<usize> = (0..listed.len()).filter(|&cell| listed[cell]).collect();
    let date_of = |cell: &usize| dates[cell / n];
    let mut by_date: Vec<(String, ArrayRef)> =
        vec![("date".to_owned(), Arc::new(Date32Array::from(dates.clone())))];
    let mut by_symbol: Vec<(String, ArrayRef)> = vec![
        (
            "date".to_owned(),
            Arc::new(Date32Array::from_iter_values(cells.iter().map(date_of))),
        ),
        (
            "symbol".to_owned(),
            Arc::new(StringArray::from_iter_values(
                cells.iter().map(|cell| symbols[cell % n]),
            )),
        ),
    ];
    for (field, column) in panel.schema().fields().iter().zip(panel.columns()) {
        let name = field.name().as_str();
        if matches!(name, "date" | "world" | "events") {
            continue;
        }
        let (values, width) = values(column, dates.len())?;
        let alone = BY_DATE.contains(&name);
        let parts = if alone { width } else { width / n.max(1) };
        let named = match name {
            "features" => names(&spec["features"]),
            "symbol_features" => names(&spec["symbol_features"]),
            "hidden" => names(&spec["hidden"]),
            _ => Vec::new(),
        };
        for part in 0..parts {
            let name = match (named.get(part), parts) {
                (Some(feature), _) => format!("{name} {feature}"),
                (None, 1) => name.to_owned(),
                (None, _) => format!("{name} {part}"),
            };
            let value = |row: usize| values[row * parts + part];
            let array: ArrayRef = match alone {
                true => Arc::new(Float64Array::from_iter_values((0..dates.len()).map(value))),
                false => Arc::new(Float64Array::from_iter_values(cells.iter().map(|&cell| value(cell)))),
            };
            if alone { &mut by_date } else { &mut by_symbol }.push((name, array));
        }
    }
    let stamps =
        |dates: &mut dyn Iterator<Item = i32>| dates.map(|day| Stamp::day(Date(day))).collect::<Vec<_>>();
    let (mut rows, mut of, mut ratios, mut cash) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (date, events) in dates
        .iter()
        .zip(panel.column_by_name("events")?.as_list_opt::<i32>()?.iter())
    {
        let events = events?;
        let (values, _) = values(&events, events.len())?;
        for event in values.chunks_exact(3) {
            rows.push(*date);
            of.push(*symbols.get(event[0] as usize)?);
            ratios.push(event[1]);
            cash.push(event[2]);
        }
    }
    let of_events: Vec<(String, ArrayRef)> = vec![
        ("date".to_owned(), Arc::new(Date32Array::from(rows.clone()))),
        ("symbol".to_owned(), Arc::new(StringArray::from(of))),
        ("ratio".to_owned(), Arc::new(Float64Array::from(ratios))),
        ("cash".to_owned(), Arc::new(Float64Array::from(cash))),
    ];
    let batch = |columns: Vec<(String, ArrayRef)>| RecordBatch::try_from_iter(columns).ok();
    Some(vec![
        table("dates", batch(by_date)?, stamps(&mut dates.iter().copied())),
        table("symbols", batch(by_symbol)?, stamps(&mut cells.iter().map(date_of))),
        table("events", batch(of_events)?, stamps(&mut rows.iter().copied())),
    ])
}

/// The elements of an observation with their normalisation, but for those of symbols that are listed after
/// `known`: these are constant until then.
pub(super) fn elements(spec: &Value, worlds: &[World], known: Date) -> Vec<(String, Value)> {
    let mut later: Vec<&str> = Vec::new();
    // Of several worlds elements are named by the number of the symbol.
    if let [world] = worlds
        && let Some((panel, _)) = world.parts.first()
        && let Some(dates) = days(panel, "date")
    {
        let symbols = names(&world.spec["symbols"]);
        let listed = listed(panel, symbols.len()).unwrap_or_default();
        let is_later = |i: usize| {
            let mut rows = listed.chunks_exact(symbols.len().max(1)).zip(&dates);
            !rows.any(|(row, date)| *date <= known.0 && row[i])
        };
        later = (0..symbols.len())
            .filter(|&i| is_later(i))
            .map(|i| symbols[i])
            .collect();
    }
    let normalisation = &spec["env"]["normalisation"];
    let is_of =
        |name: &str, symbol: &str| name.strip_prefix(symbol).is_some_and(|rest| rest.starts_with('.'));
    let mut elements = vec![("clip".to_owned(), normalisation["clip"].clone())];
    for (i, name) in names(&spec["env"]["observation"]).into_iter().enumerate() {
        if later.iter().any(|symbol| is_of(name, symbol)) {
            continue;
        }
        let value = serde_json::json!([normalisation["offset"][i], normalisation["scale"][i]]);
        elements.push((format!("observation {name}"), value));
    }
    elements
}
