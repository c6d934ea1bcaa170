//! The tables of `env/stocks` and `env/table`: their files have lists of values for all symbols of a world.

use super::{World, columns, days, element, keys, stamps};
use crate::moment::Stamp;
use crate::table::Table;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_schema::DataType;
use datasets::Date;
use serde_json::Value;

/// The columns of `env/stocks` that are by date alone; all others have a value for each symbol.
const BY_DATE: [&str; 4] = ["rate", "risk", "features", "hedge"];

fn names(list: &Value) -> Vec<&str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// The values of a column, row by row, and the number of values in a row.
fn values(column: &ArrayRef) -> (ArrayRef, usize) {
    match column.data_type() {
        DataType::FixedSizeList(_, width) => (
            column.as_fixed_size_list().values().clone(),
            width.cast_unsigned() as usize,
        ),
        _ => (column.clone(), 1),
    }
}

/// The rows of a world of `env/table`, with a column for each value of each symbol. `None` if its file does
/// not have the form that `env/table` writes.
pub(super) fn rows(spec: &Value, world: &World) -> Option<Vec<Table>> {
    let (rows, _) = world.parts.first()?;
    let symbols = names(&world.spec["symbols"]);
    let mut all = columns([("date", rows.column_by_name("date")?.clone())]);
    for (column, by_symbol) in [("observed", true), ("paying", true), ("terms", false)] {
        let Some(list) = rows.column_by_name(column) else {
            continue;
        };
        let (values, width) = values(list);
        let own = names(&spec[column]);
        for place in 0..width {
            let name = own.get(place % own.len().max(1))?;
            let name = match by_symbol && symbols.len() > 1 {
                true => format!("{column} {} {name}", symbols.get(place / own.len())?),
                false => format!("{column} {name}"),
            };
            all.push((
                name,
                element(&values, (0..rows.num_rows()).map(|row| row * width + place))?,
            ));
        }
    }
    Some(vec![Table::named(
        "rows",
        RecordBatch::try_from_iter(all).ok()?,
        stamps(rows)?,
    )])
}

/// For each date and symbol of `env/stocks`, true once the symbol has been listed.
fn listed(panel: &RecordBatch) -> Option<Vec<bool>> {
    let floats = |name: &str| cast(&values(panel.column_by_name(name)?).0, &DataType::Float64).ok();
    let (marks, statuses) = (floats("mark")?, floats("status")?);
    let (marks, statuses) = (
        marks.as_primitive::<Float64Type>(),
        statuses.as_primitive::<Float64Type>(),
    );
    Some(
        marks
            .values()
            .iter()
            .zip(statuses.values())
            .map(|(mark, status)| *mark != 0.0 || *status != 0.0)
            .collect(),
    )
}

/// The tables of a world of `env/stocks`: values by date, values by date and symbol from the symbol's listing
/// on, and corporate actions. `None` if a file does not have the form that `env/stocks` writes.
pub(super) fn tables(spec: &Value, world: &World) -> Option<Vec<Table>> {
    let (panel, _) = world.parts.first()?;
    let (dates, symbols) = (days(panel, "date")?, names(&world.spec["symbols"]));
    let n = symbols.len();
    let listed = listed(panel).filter(|listed| listed.len() == dates.len() * n)?;
    let cells: Vec<usize> = (0..listed.len()).filter(|&cell| listed[cell]).collect();
    let keyed =
        |rows: &[(i32, &str)]| keys("symbol", rows.iter().map(|row| row.0), rows.iter().map(|row| row.1));
    let listings: Vec<(i32, &str)> = cells.iter().map(|cell| (dates[cell / n], symbols[cell % n])).collect();
    let mut by_symbol = keyed(&listings);
    let mut by_date = columns([("date", panel.column_by_name("date")?.clone())]);
    for (field, column) in panel.schema().fields().iter().zip(panel.columns()) {
        let name = field.name().as_str();
        if matches!(name, "date" | "world" | "events") {
            continue;
        }
        let (values, width) = values(column);
        let alone = BY_DATE.contains(&name);
        let parts = if alone { width } else { width / n.max(1) };
        let named = names(&spec[name]);
        for part in 0..parts {
            let name = match (named.get(part), parts) {
                (Some(feature), _) => format!("{name} {feature}"),
                (None, 1) => name.to_owned(),
                (None, _) => format!("{name} {part}"),
            };
            match alone {
                true => {
                    by_date.push((name, element(&values, (0..dates.len()).map(|row| row * parts + part))?))
                }
                false => {
                    by_symbol.push((name, element(&values, cells.iter().map(|cell| cell * parts + part))?))
                }
            }
        }
    }
    let (mut rows, mut places) = (Vec::new(), Vec::new());
    let lists = panel.column_by_name("events")?.as_list_opt::<i32>()?;
    let events = cast(&values(lists.values()).0, &DataType::Float64).ok()?;
    let numbers = events.as_primitive::<Float64Type>();
    let width = values(lists.values()).1;
    for (date, range) in dates.iter().zip(lists.value_offsets().windows(2)) {
        for place in
            (range[0].cast_unsigned() as usize * width..range[1].cast_unsigned() as usize * width).step_by(3)
        {
            rows.push((*date, *symbols.get(numbers.value(place) as usize)?));
            places.push(place);
        }
    }
    let mut actions = keyed(&rows);
    for (offset, name) in [(1, "ratio"), (2, "cash")] {
        actions.push((
            name.to_owned(),
            element(&events, places.iter().map(|place| place + offset))?,
        ));
    }
    let table = |name: &str, columns: Vec<(String, ArrayRef)>, days: &mut dyn Iterator<Item = i32>| {
        let stamps = days.map(|day| Stamp::day(Date(day))).collect();
        Some(Table::named(name, RecordBatch::try_from_iter(columns).ok()?, stamps))
    };
    Some(vec![
        table("dates", by_date, &mut dates.iter().copied())?,
        table("symbols", by_symbol, &mut listings.iter().map(|key| key.0))?,
        table("events", actions, &mut rows.iter().map(|row| row.0))?,
    ])
}

/// The elements of an observation of `env/stocks` with their normalisation, except for those of symbols
/// listed after `known`, which are constant until then.
pub(super) fn elements(spec: &Value, worlds: &[World], known: Date) -> Vec<(String, Value)> {
    let mut later: Vec<&str> = Vec::new();
    // With several worlds, elements are named by the index of the symbol.
    if let [world] = worlds
        && let Some((panel, _)) = world.parts.first()
        && let (Some(dates), Some(listed)) = (days(panel, "date"), listed(panel))
    {
        let symbols = names(&world.spec["symbols"]);
        let rows = || dates.iter().zip(listed.chunks_exact(symbols.len().max(1)));
        let is_later = |i: usize| !rows().any(|(date, row)| *date <= known.0 && row[i]);
        later = (0..symbols.len())
            .filter(|&i| is_later(i))
            .map(|i| symbols[i])
            .collect();
    }
    let normalisation = &spec["env"]["normalisation"];
    let is_of =
        |name: &str, symbol: &str| name.strip_prefix(symbol).is_some_and(|rest| rest.starts_with('.'));
    let elements = names(&spec["env"]["observation"]).into_iter().enumerate();
    let elements = elements
        .filter(|(_, name)| !later.iter().any(|symbol| is_of(name, symbol)))
        .map(|(i, name)| {
            let value = serde_json::json!([normalisation["offset"][i], normalisation["scale"][i]]);
            (format!("observation {name}"), value)
        });
    std::iter::once(("clip".to_owned(), normalisation["clip"].clone()))
        .chain(elements)
        .collect()
}
