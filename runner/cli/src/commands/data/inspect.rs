//! `runner data inspect`.

use super::attempt::{Attempt, attempt, left_out, questions};
use super::chain;
use super::read::{self, Looked, Read, path_of};
use super::trial::Scratch;
use crate::commands::data::read::ReadArgs;
use crate::commands::show::facts_table;
use crate::output;
use crate::session::Session;
use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Float64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::display::array_value_to_string;
use arrow_schema::DataType;
use clap::Args;
use datasets::Date;
use datasets::layout::Table;
use datasets::schema::{self, SNAPSHOT, TRADABLE};
use runner_engine::{Failure, text};
use serde::Serialize;
use serde_json::{Value, json};
use stages_core::table;
use stages_ingest::propose::scalar;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Show what files are taken for and why, and their contents.
///
/// Also their quality, and the YAML of a stage that reads them.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner data inspect data/spx_eod_202312.txt
  runner data inspect data/options --layout ./my_vendor.yaml
  runner data inspect unknown.csv      # proposes a mapping")]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub read: ReadArgs,
}

pub(crate) fn inspect(session: &Session, args: &ReadArgs) -> Result<(), Failure> {
    let scratch = Scratch::new(&session.current)?;
    let mut looked = read::look(&session.current, args)?;
    let mut tried = attempt(&scratch, args, &looked)?;
    // Files of several headers are several tables: the one with most bytes is shown.
    let (mut args, mut others) = (args.clone(), Vec::new());
    if tried.as_ref().is_none_or(|tried| tried.read.is_none())
        && let [path] = args.paths.as_slice()
        && let [(_, first), rest @ ..] = read::by_header(&session.current, path)?.as_slice()
        && !rest.is_empty()
    {
        others = rest.iter().flat_map(|(_, paths)| paths.clone()).collect();
        args.paths.clone_from(first);
        looked = read::look(&session.current, &args)?;
        tried = attempt(&scratch, &args, &looked)?;
    }
    let (args, attempt) = (&args, tried);
    let batches = match attempt.as_ref().and_then(|attempt| attempt.read.as_ref()) {
        Some(read) => read.partitions()?,
        None => Vec::new(),
    };
    let table = attempt.as_ref().and_then(|attempt| attempt.table);
    let columns = ranges(table, &batches);
    let days = days(&batches);
    let refused = attempt.is_none().then(|| looked.refusal(args));
    let finding = attempt
        .as_ref()
        .map_or(refused.as_ref(), |attempt| attempt.finding.as_ref());
    let meta = attempt
        .as_ref()
        .and_then(|attempt| Some(&attempt.read.as_ref()?.artifact.meta));
    if session.json {
        let proposed = attempt.as_ref().filter(|attempt| attempt.is_proposed);
        return output::print_json(&json!({
            "files": looked.files,
            "files_of_other_headers": others,
            "format": looked.first.format,
            "separator": looked.first.separator,
            "header": looked.first.header,
            "table": table.filter(|_| proposed.is_none()),
            "proposed_table": proposed.map(|attempt| &attempt.name),
            "kind": attempt.as_ref().map(|attempt| &attempt.kind),
            "why": attempt.as_ref().map(|attempt| &attempt.why),
            "candidates": candidates(&looked),
            "columns": columns,
            "first_rows": first_rows(&batches),
            "first_day": days.first(),
            "last_day": days.last(),
            "days": days.len(),
            "missing": attempt.as_ref().map(|attempt| &attempt.missing),
            "doubts": attempt.as_ref().map(|attempt| &attempt.doubts),
            "finding": finding.map(|err| &err.message),
            "hint": finding.and_then(|err| err.hint.as_ref()),
            "questions": attempt.as_ref().map(|attempt| questions(&attempt.yaml)),
            "read_with": attempt.as_ref().map(|attempt| &attempt.under),
            "meta": meta,
            "stage": attempt.as_ref().map(|attempt| &attempt.yaml),
        }));
    }
    let mut out = opening(args, &looked);
    if !others.is_empty() {
        let _ = writeln!(
            out,
            "files of other headers are left out (inspect them by themselves; `runner init` takes all): {}",
            others.join(", ")
        );
    }
    match &attempt {
        Some(attempt) if !attempt.is_proposed => {
            let _ = writeln!(out, "header: {}", looked.first.header.join(", "));
            let layouts = attempt.read.as_ref().map(layouts_of).unwrap_or_default();
            let layouts = if layouts.is_empty() {
                String::new()
            } else {
                format!("{layouts} of ")
            };
            let _ = writeln!(out, "taken for {layouts}{}: {}", attempt.name, attempt.why);
            write_candidates(&mut out, &looked, 4);
        }
        Some(attempt) => {
            let header = looked.first.header.join(", ");
            let _ = writeln!(out, "no layout is known with this header: {header}");
            write_candidates(&mut out, &looked, 3);
            let _ = writeln!(out, "taken for {} ({}): {}", attempt.name, attempt.kind, attempt.why);
        }
        None => write_candidates(&mut out, &looked, 4),
    }
    if let Some(err) = finding {
        let _ = writeln!(out, "\nfinding: {}", err.message);
        if let Some(hint) = &err.hint {
            let _ = writeln!(out, "  way out: {hint}");
        }
    }
    if let Some(attempt) = &attempt {
        doubts(&mut out, attempt);
    }
    match meta {
        Some(meta) => {
            contents(&mut out, meta, &batches, &columns, &days);
            if table == Some(Table::Chain)
                && let Some(read) = attempt.as_ref().and_then(|attempt| attempt.read.as_ref())
            {
                out.push('\n');
                out.push_str(&chain::plots(&scratch, read)?);
            }
        }
        None => raw(&mut out, &looked),
    }
    if let Some(attempt) = &attempt {
        let proposed = if attempt.is_proposed { "proposed, to" } else { "to" };
        let _ = write!(out, "\n{proposed} paste below `stages:`\n{}", attempt.yaml);
    }
    output::print(&out)
}

/// The files, their format and their separator.
fn opening(args: &ReadArgs, looked: &Looked) -> String {
    let first = &looked.first;
    let mut out = format!("{}: {}", args.paths.join(", "), text::count(looked.files.len(), "file"));
    if !first.format.is_empty() {
        let _ = write!(out, ", {}", first.format);
    }
    match first.separator {
        Some('\t') => out.push_str(" separated by tabs"),
        Some(separator) if separator != ',' => {
            let _ = write!(out, " separated by `{separator}`");
        }
        _ => {}
    }
    out.push('\n');
    out
}

/// Points to check, and what the rows below were read with.
fn doubts(out: &mut String, attempt: &Attempt) {
    if !attempt.missing.is_empty() {
        let _ = writeln!(out, "not found, and needed: {}", attempt.missing.join(", "));
    }
    for doubt in &attempt.doubts {
        let _ = writeln!(out, "check: {doubt}");
    }
    for line in left_out(&attempt.yaml) {
        let _ = writeln!(out, "{line}");
    }
    for question in questions(&attempt.yaml) {
        let _ = writeln!(out, "question: {question}");
    }
    for warning in &attempt.warnings {
        let _ = writeln!(out, "warning: {warning}");
    }
    if !attempt.under.is_empty() && attempt.read.is_some() {
        let _ = writeln!(out, "what follows was read with `{}`", attempt.under.join("`, `"));
    }
}

/// The contents of a table that was read.
fn contents(
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
    out.push_str("\nfirst rows, as they are understood\n");
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
fn first_rows(batches: &[RecordBatch]) -> Vec<String> {
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

/// A file that no stage reads, as it stands.
fn raw(out: &mut String, looked: &Looked) {
    let first = &looked.first;
    if !first.header.is_empty() {
        let _ = writeln!(out, "\nheader: {}", first.header.join(", "));
    }
    if first.columns.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "columns of the first {} rows, as they stand in the file",
        first.sampled
    );
    for column in &first.columns {
        let _ = writeln!(
            out,
            "  {:25} {:>6} values, {:>6} different  {}",
            column.name,
            column.values,
            column.distinct,
            column.first.join(", ")
        );
    }
}

/// The candidates of all tables: name, names found, names asked for, reason.
fn candidates(looked: &Looked) -> Vec<(String, usize, usize, String)> {
    let mut all: Vec<_> = looked
        .first
        .tables
        .iter()
        .flat_map(|(_, candidates, _)| candidates)
        .filter(|candidate| candidate.fits || candidate.score() >= 2 || candidate.name_fits)
        .map(|candidate| {
            let of = candidate.found.len() + candidate.lacks.len();
            (
                candidate.fits,
                candidate.layout.name.clone(),
                candidate.score(),
                of,
                candidate.reason(),
            )
        })
        .collect();
    all.sort_by_key(|(fits, _, score, of, _)| {
        std::cmp::Reverse((*fits, if *fits { *score } else { score * 1000 / of.max(&1) }))
    });
    all.into_iter()
        .map(|(_, name, score, of, reason)| (name, score, of, reason))
        .collect()
}

fn write_candidates(out: &mut String, looked: &Looked, most: usize) {
    for (name, score, of, reason) in candidates(looked).into_iter().take(most) {
        let _ = writeln!(out, "  {name:24} {score:2} of {of:2}  {reason}");
    }
}

fn layouts_of(read: &Read) -> String {
    let names = read.artifact.meta["layout"].as_array();
    let names: Vec<_> = names.into_iter().flatten().filter_map(Value::as_str).collect();
    names
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
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
struct Range {
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

fn ranges(table: Option<Table>, batches: &[RecordBatch]) -> Vec<Range> {
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

/// The stage that reads the files, to be pasted.
pub(super) fn stage_yaml(args: &ReadArgs, table: Table) -> String {
    let mut out = format!(
        "  {}:\n    uses: {}\n    with:\n      path: {}\n",
        table.name(),
        table.stage_kind(),
        path_of(&args.paths)
    );
    if let Some(layout) = &args.layout {
        let _ = writeln!(out, "      layout: {}", scalar(layout));
    }
    if let Some(symbol) = args.symbol.as_ref().filter(|_| table != Table::Rates) {
        let _ = writeln!(out, "      symbol: {}", scalar(symbol));
    }
    out
}
