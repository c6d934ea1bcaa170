//! The contents of a table that was read: first rows, facts, columns, days and quality.

use crate::commands::show::facts_table;
use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Float64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::display::array_value_to_string;
use arrow_schema::DataType;
use datasets::Date;
use datasets::layout::Table;
use datasets::schema::{self, SNAPSHOT, TRADABLE};
use serde::Serialize;
use serde_json::Value;
use stages_core::table;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The contents of a table that was read.
pub(super) fn contents(
    out: &mut String,
    meta: &Value,
    batches: &[RecordBatch],
    columns: &[Range],
    days: &BTreeSet<Date>,
) {
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    match meta.get("rows_read").filter(|read| !read.is_null()) {
        Some(read) => {
            let _ = writeln!(
                out,
                "\n{read} rows read, {} kept",
                meta["rows"].as_u64().unwrap_or(rows as u64)
            );
        }
        None => {
            let _ = writeln!(out, "\n{rows} rows");
        }
    }
    out.push_str("\nfirst rows, as they are read\n");
    for line in first_rows(batches) {
        let _ = writeln!(out, "  {line}");
    }
    facts(out, meta);
    out.push_str("\ncolumns\n");
    for range in columns {
        let _ = writeln!(out, "  {}", range.line());
    }
    gaps(out, meta, days);
    snapshots(out, meta);
    if meta.get("quality").is_some() {
        quality(out, meta);
    }
}

/// The first rows of a table as lines of text, below the names of the columns that have values in them.
pub(super) fn first_rows(batches: &[RecordBatch]) -> Vec<String> {
    const ROWS: usize = 4;
    const COLUMNS: usize = 10;
    let Some(batch) = batches.iter().find(|batch| batch.num_rows() > 0) else {
        return Vec::new();
    };
    let rows = batch.num_rows().min(ROWS);
    let schema = batch.schema();
    let mut columns: Vec<Vec<String>> = Vec::new();
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        if (0..rows).all(|row| column.is_null(row)) {
            continue;
        }
        let shown = table::displayed(column);
        let numbers = column.as_primitive_opt::<Float64Type>();
        let cell = |row: usize| match numbers {
            Some(numbers) if numbers.is_valid(row) => short(numbers.value(row)),
            _ => array_value_to_string(&shown, row).unwrap_or_default(),
        };
        columns.push(
            std::iter::once(field.name().clone())
                .chain((0..rows).map(cell))
                .collect(),
        );
    }
    columns.truncate(COLUMNS);
    let widths: Vec<usize> = columns
        .iter()
        .map(|cells| cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0))
        .collect();
    let line = |row: usize| {
        let cells = columns
            .iter()
            .zip(&widths)
            .map(|(cells, width)| format!("{:>width$}", cells[row]));
        cells.collect::<Vec<_>>().join("  ")
    };
    (0..=rows).map(line).collect()
}

/// A number with no more than seven significant digits behind the point.
fn short(number: f64) -> String {
    let whole = number.abs().log10().floor().clamp(-12.0, 12.0);
    let digits = (6.0 - whole).clamp(0.0, 12.0) as usize;
    let text = format!("{number:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// The facts of a table: those of its contracts by class, each with its origin, and those of all of it.
fn facts(out: &mut String, meta: &Value) {
    out.push_str("\nfacts\n");
    for key in ["symbols", "currency", "calendar", "underlying", "quotes"] {
        let value = meta
            .get(key)
            .filter(|value| !value.is_null() && meta["facts"][key].is_null());
        if let Some(value) = value {
            let _ = writeln!(out, "  {key:12} {}", shown(value));
        }
    }
    out.push_str(&facts_table(meta));
    // Classes that have the same facts stand in one line.
    let mut classes: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (class, facts) in meta["contracts"].as_object().into_iter().flatten() {
        let terms: Vec<String> = facts["origin"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(term, origin)| format!("{term} {} ({})", shown(&facts[term]), shown(origin)))
            .collect();
        classes.entry(terms.join(", ")).or_default().push(class);
    }
    for (terms, names) in classes {
        let _ = writeln!(out, "  {}: {terms}", names.join(", "));
    }
}

/// A value as text, its end left out where it is long.
fn shown(value: &Value) -> String {
    const LONGEST: usize = 100;
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if text.chars().count() <= LONGEST {
        return text;
    }
    text.chars().take(LONGEST - 1).chain(['…']).collect()
}

/// A column's range.
#[derive(Serialize)]
pub(super) struct Range {
    name: String,
    unit: &'static str,
    values: usize,
    missing: usize,
    least: String,
    most: String,
    sum: Option<f64>,
}

impl Range {
    fn new(table: Option<Table>, name: &str, batches: &[RecordBatch]) -> Self {
        let columns = || batches.iter().filter_map(|batch| batch.column_by_name(name));
        let schema = table.map_or(&[] as &[_], Table::schema);
        let known = schema.iter().chain([&SNAPSHOT, &TRADABLE]).chain(schema::stated());
        let missing = columns().map(|column| column.null_count()).sum();
        let floats = columns().filter_map(|column| column.as_primitive_opt::<Float64Type>());
        let numbers: Vec<f64> = floats.flat_map(|values| values.iter().flatten()).collect();
        let texts: BTreeSet<String> = columns().flat_map(texts).collect();
        let text = |text: Option<&String>| text.cloned().unwrap_or_default();
        let (least, most) = match numbers.is_empty() {
            true => (text(texts.first()), text(texts.last())),
            false => (
                numbers.iter().copied().fold(f64::INFINITY, f64::min).to_string(),
                numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max).to_string(),
            ),
        };
        Self {
            name: name.to_owned(),
            unit: known
                .into_iter()
                .find(|column| column.name == name)
                .map_or("", |column| column.doc),
            values: columns().map(|column| column.len()).sum::<usize>() - missing,
            missing,
            least,
            most,
            sum: (!numbers.is_empty()).then(|| numbers.iter().sum()),
        }
    }

    fn line(&self) -> String {
        let sum = self.sum.map(|sum| format!("  sum {sum:.4}")).unwrap_or_default();
        format!(
            "{:25} {:>9} values, {:>7} missing  {} to {}{sum}  {}",
            self.name, self.values, self.missing, self.least, self.most, self.unit
        )
    }
}

/// The values of a column of dates, instants, texts or flags.
fn texts(column: &ArrayRef) -> Vec<String> {
    let zone = match column.data_type() {
        DataType::Timestamp(..) => "Z",
        DataType::Date32 | DataType::Utf8 | DataType::Boolean => "",
        _ => return Vec::new(),
    };
    let shown = table::displayed(column);
    let text = |row| Some(array_value_to_string(&shown, row).ok()? + zone);
    let valid = (0..column.len()).filter(|&row| column.is_valid(row));
    valid.filter_map(text).collect()
}

/// The ranges of a table's columns.
pub(super) fn ranges(table: Option<Table>, batches: &[RecordBatch]) -> Vec<Range> {
    let schema = batches.first().map(RecordBatch::schema);
    let fields = schema.iter().flat_map(|schema| schema.fields());
    fields.map(|field| Range::new(table, field.name(), batches)).collect()
}

/// The days of a table.
pub(super) fn days(batches: &[RecordBatch]) -> BTreeSet<Date> {
    batches
        .iter()
        .filter_map(|batch| batch.column_by_name("date"))
        .filter_map(|column| column.as_primitive_opt::<Date32Type>())
        .flat_map(|days| days.iter().flatten().map(Date).collect::<Vec<_>>())
        .collect()
}

/// The snapshots of a day, and the zone of their times with its origin.
fn snapshots(out: &mut String, meta: &Value) {
    let Some(of_day) = meta.get("snapshots_a_day") else {
        return;
    };
    let text = |key: &str| shown(&of_day[key]);
    let list = |key: &str| {
        let names = of_day[key].as_array().into_iter().flatten().filter_map(Value::as_str);
        names.collect::<Vec<_>>().join(", ")
    };
    let _ = writeln!(
        out,
        "{} snapshots a day ({} to {}; {} of {} days have fewer), {} to {} {}; the files' times are in {} \
        ({})",
        text("usual"),
        text("fewest"),
        text("most"),
        text("days_with_fewer"),
        text("days"),
        text("first"),
        text("last"),
        list("time_zone"),
        list("file_time_zone"),
        text("file_time_zone_origin"),
    );
}

/// The days, and those that are missing by the calendar.
fn gaps(out: &mut String, meta: &Value, days: &BTreeSet<Date>) {
    let (Some(first), Some(last)) = (days.first(), days.last()) else {
        return;
    };
    let rules: BTreeMap<&str, &Value> = meta["quality"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|rule| Some((rule["rule"].as_str()?, rule)))
        .collect();
    let _ = write!(out, "\n{} days from {first} to {last}", days.len());
    match rules.get("missing_day").filter(|rule| rule["days"] != 0) {
        Some(rule) => {
            let _ = writeln!(
                out,
                "; {} missing by the calendar {}: {}",
                rule["days"], meta["calendar"], rule["examples"]
            );
        }
        None if meta["calendar"].is_null() => out.push('\n'),
        None => {
            let _ = writeln!(out, "; none missing by the calendar {}", meta["calendar"]);
        }
    }
}

fn quality(out: &mut String, meta: &Value) {
    out.push_str("\nquality (rule, rows, days, action, first examples)\n");
    let mut is_clean = true;
    for rule in meta["quality"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|rule| rule["rows"] != 0)
    {
        is_clean = false;
        let _ = writeln!(
            out,
            "  {:28} {:>8} {:>6}  {:10} {}",
            rule["rule"].as_str().unwrap_or_default(),
            rule["rows"],
            rule["days"],
            rule["action"].as_str().unwrap_or_default(),
            rule["examples"]
        );
    }
    if is_clean {
        out.push_str("  no rule is broken\n");
    }
}
