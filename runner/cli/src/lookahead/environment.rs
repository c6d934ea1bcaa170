//! The tables of `env/options` by date: its files number contracts within a part, and a part spans the date of a cut.

use super::moment::Stamp;
use super::read::Table;
use arrow::array::{Array, ArrayRef, AsArray, Date32Array, Float64Array, Int32Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Date32Type, Float64Type, Int32Type, UInt32Type};
use arrow::ipc::reader::FileReader;
use cache::{Artifact, Store};
use datasets::Date;
use serde_json::{Value, json};
use std::io::Cursor;
use std::sync::Arc;

/// The stage kind.
pub const KIND: &str = "env/options";

/// The ranges of an environment.
#[derive(Clone, Debug)]
pub struct Ranges {
    pub train: Option<(Date, Date)>,
    pub test: (Date, Date),
}

struct Environment {
    spec: Value,
    /// The snapshots and the contracts of each part.
    parts: Vec<(RecordBatch, RecordBatch)>,
}

fn file(store: &Store, artifact: &Artifact, path: &str) -> Result<Vec<u8>, String> {
    let entry = artifact
        .entries
        .iter()
        .find(|entry| entry.path == path)
        .ok_or_else(|| format!("has no file `{path}`"))?;
    Ok(store.blob(entry.blob).map_err(|err| err.to_string())?.to_vec())
}

fn arrow_file(bytes: &[u8]) -> Result<RecordBatch, String> {
    let reader = FileReader::try_new(Cursor::new(bytes), None).map_err(|err| err.to_string())?;
    let schema = reader.schema();
    let batches: Vec<RecordBatch> = reader.collect::<Result<_, _>>().map_err(|err| err.to_string())?;
    arrow::compute::concat_batches(&schema, &batches).map_err(|err| err.to_string())
}

impl Environment {
    fn read(store: &Store, artifact: &Artifact) -> Result<Self, String> {
        let spec: Value = serde_json::from_slice(&file(store, artifact, "env.json")?).map_err(|err| err.to_string())?;
        let names = spec["parts"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let part = |name: &str| {
            let read = |table: &str| arrow_file(&file(store, artifact, &format!("{name}/{table}.arrow"))?);
            Ok((read("snapshots")?, read("paths")?))
        };
        Ok(Self {
            parts: names.map(part).collect::<Result<_, String>>()?,
            spec,
        })
    }

    fn dates(&self) -> Vec<Date> {
        let of_part = |(snapshots, _): &(RecordBatch, RecordBatch)| days(snapshots, "date");
        self.parts.iter().filter_map(of_part).flatten().map(Date).collect()
    }

    fn ranges(&self) -> Option<Ranges> {
        let dates = self.dates();
        let range = |name: &str| {
            let range = &self.spec["splits"][name];
            let date = |end: &str| dates.get(usize::try_from(range[end].as_u64()?).ok()?).copied();
            Some((date("first")?, date("last")?))
        };
        Some(Ranges {
            train: range("train"),
            test: range("test")?,
        })
    }
}

fn days(batch: &RecordBatch, column: &str) -> Option<Vec<i32>> {
    Some(
        batch
            .column_by_name(column)?
            .as_primitive_opt::<Date32Type>()?
            .values()
            .to_vec(),
    )
}

/// The ranges of an environment; `None` if it is none of ours with dates.
pub fn ranges(store: &Store, artifact: &Artifact) -> Option<Ranges> {
    Environment::read(store, artifact).ok()?.ranges()
}

/// A configuration with these ranges written out: by fractions they would move with the last date.
pub fn with_ranges(config: &Value, ranges: &Ranges) -> Value {
    let range = |(from, to): (Date, Date)| json!({ "from": from.to_string(), "to": to.to_string() });
    let mut config = config.clone();
    config["train"] = ranges.train.map_or(Value::Null, range);
    config["test"] = range(ranges.test);
    config
}

/// The tables of an environment: its snapshots, the quotes of its contracts, and what was fitted, which is known at the end of training.
///
/// # Errors
/// When a file is not as `env/options` writes it.
pub fn tables(store: &Store, artifact: &Artifact) -> Result<Vec<Table>, String> {
    let environment = Environment::read(store, artifact)?;
    let mut snapshots = Vec::new();
    let mut quotes: Vec<(i32, String, Vec<u64>)> = Vec::new();
    for (of_part, paths) in &environment.parts {
        let wrong = || "is not as `env/options` writes it".to_owned();
        let contracts = contracts(paths).ok_or_else(wrong)?;
        let dates = days(of_part, "date").ok_or_else(wrong)?;
        snapshots.push(with_contracts(of_part, &contracts).ok_or_else(wrong)?);
        histories(paths, &contracts, &dates, &mut quotes).ok_or_else(wrong)?;
    }
    let schema = snapshots.first().map(RecordBatch::schema).ok_or("has no snapshots")?;
    let snapshots = arrow::compute::concat_batches(&schema, &snapshots).map_err(|err| err.to_string())?;
    quotes.sort();
    let stamps =
        |dates: &mut dyn Iterator<Item = i32>| Some(dates.map(|day| Stamp::day(Date(day))).collect::<Vec<_>>());
    let dates = days(&snapshots, "date").unwrap_or_default();
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        (
            "date",
            Arc::new(Date32Array::from_iter_values(quotes.iter().map(|quote| quote.0))),
        ),
        (
            "contract",
            Arc::new(StringArray::from_iter_values(quotes.iter().map(|quote| &quote.1))),
        ),
    ];
    let names = ["bid", "ask", "mark", "delta", "gamma", "vega", "theta", "source"];
    for (i, name) in names.into_iter().enumerate() {
        let value = |quote: &(i32, String, Vec<u64>)| quote.2.get(i).map_or(f64::NAN, |bits| f64::from_bits(*bits));
        columns.push((name, Arc::new(Float64Array::from_iter_values(quotes.iter().map(value)))));
    }
    let quote_table = RecordBatch::try_from_iter(columns).map_err(|err| err.to_string())?;
    let table = |name: &str, batch, stamps| Table {
        name: name.to_owned(),
        batch,
        date: Some(0),
        stamps,
    };
    Ok(vec![
        table("snapshots", snapshots, stamps(&mut dates.iter().copied())),
        table(
            "contracts",
            quote_table,
            stamps(&mut quotes.iter().map(|quote| quote.0)),
        ),
        fitted(&environment)?,
    ])
}

/// The parts of `env.json` that were fitted on training dates.
fn fitted(environment: &Environment) -> Result<Table, String> {
    let spec = &environment.spec;
    let ranges = environment.ranges().ok_or("has no ranges")?;
    let known = ranges.train.map_or(ranges.test.0, |(_, last)| last);
    let rows = [
        ("normalisation", &spec["env"]["normalisation"]),
        ("observation", &spec["env"]["observation"]),
        ("warm_up", &spec["warm_up"]),
        ("multiplier", &spec["multiplier"]),
        ("train", &spec["splits"]["train"]),
    ];
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "date",
            Arc::new(Date32Array::from_iter_values(rows.iter().map(|_| known.0))),
        ),
        (
            "name",
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.0))),
        ),
        (
            "value",
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.1.to_string()))),
        ),
    ];
    let batch = RecordBatch::try_from_iter(columns).map_err(|err| err.to_string())?;
    let stamps = Some(vec![Stamp::day(known); rows.len()]);
    Ok(Table {
        name: "env.json".to_owned(),
        batch,
        date: Some(0),
        stamps,
    })
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

/// The quotes of the contracts of a part, by date.
fn histories(
    paths: &RecordBatch,
    contracts: &[String],
    dates: &[i32],
    quotes: &mut Vec<(i32, String, Vec<u64>)>,
) -> Option<()> {
    let firsts = paths.column_by_name("first")?.as_primitive_opt::<UInt32Type>()?;
    let lists = paths.column_by_name("entries")?.as_list_opt::<i32>()?;
    for (i, contract) in contracts.iter().enumerate() {
        let entries = lists.value(i);
        let entries = entries.as_fixed_size_list_opt()?;
        for j in 0..entries.len() {
            let values = entries.value(j);
            let bits = values
                .as_primitive_opt::<Float64Type>()?
                .values()
                .iter()
                .map(|value| value.to_bits())
                .collect();
            quotes.push((*dates.get(firsts.value(i) as usize + j)?, contract.clone(), bits));
        }
    }
    Some(())
}
