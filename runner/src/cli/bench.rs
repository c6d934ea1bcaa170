//! `runner bench`: measures this machine, and prints a table.

use super::args::BenchArgs;
use super::output;
use super::session::Session;
use crate::error::Failure;
use crate::text;
use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;

/// What can be measured.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum What {
    /// Greeks and implied volatilities a second.
    Greeks,
    /// Feature rows a second.
    Features,
    /// Rows of CSV a second.
    Ingest,
    /// Environment steps a second.
    Env,
    /// Training steps a second.
    Train,
    /// Training steps a second on each device.
    Device,
    /// What a run costs that has nothing, little or everything to do, and what the store costs.
    Cache,
}

pub(crate) fn bench(session: &Session, args: &BenchArgs) -> Result<(), Failure> {
    let result = match args.what {
        What::Greeks => value(&stages_greeks::bench(2_000_000).rows),
        What::Features => value(&stages_features::bench(30, 20_000).rows),
        What::Ingest => value(&stages_ingest::bench(500_000)?),
        What::Env => value(&stages_env::bench()?),
        What::Train => value(&stages_train::bench(args.sweep)?),
        What::Device => value(&stages_train::bench_devices()?),
        What::Cache => value(&super::bench_cache::measure()?),
    };
    if session.json {
        output::print_json(&result)
    } else {
        output::print(&table(&result))
    }
}

fn value(rows: &impl Serialize) -> Value {
    serde_json::to_value(rows).unwrap_or_default()
}

/// Rows of the same fields as a table.
fn table(rows: &Value) -> String {
    let rows: Vec<&serde_json::Map<String, Value>> = rows
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .collect();
    let Some(first) = rows.first() else {
        return "nothing was measured\n".to_owned();
    };
    // What a row is about comes first, what the floor is comes last.
    let mut names: Vec<&String> = first.keys().collect();
    names.sort_by_key(|name| (*name == "floor", !first[*name].is_string()));
    let header: Vec<String> = names.iter().map(|name| name.replace('_', " ")).collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let cell = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => figure(number.as_f64().unwrap_or(f64::NAN)),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let body: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            names
                .iter()
                .map(|name| row.get(*name).map(cell).unwrap_or_default())
                .collect()
        })
        .collect();
    let right: Vec<usize> = (0..names.len()).filter(|&i| !first[names[i]].is_string()).collect();
    text::table(&header, &body, &right)
}

/// A number with three digits or a thousands separator.
fn figure(value: f64) -> String {
    if value.abs() < 1000.0 {
        return format!("{value:.2}");
    }
    let digits = format!("{value:.0}");
    let (sign, digits) = digits
        .strip_prefix('-')
        .map_or(("", digits.as_str()), |digits| ("-", digits));
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    format!("{sign}{out}")
}
