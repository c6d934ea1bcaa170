//! The tables of `env/options` by date: its files number contracts within a part, and a part spans the date of a cut.

use super::moment::{self, Stamp};
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
    worlds: Vec<World>,
}

/// A world of an environment.
struct World {
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
        let part = |name: &str| {
            let read = |table: &str| arrow_file(&file(store, artifact, &format!("{name}/{table}.arrow"))?);
            Ok((read("snapshots")?, read("paths")?))
        };
        let world = |spec: &Value| {
            let names = spec["parts"].as_array().into_iter().flatten().filter_map(Value::as_str);
            Ok(World {
                parts: names.map(part).collect::<Result<_, String>>()?,
                spec: spec.clone(),
            })
        };
        let worlds = spec["worlds"].as_array().into_iter().flatten().map(world);
        Ok(Self {
            worlds: worlds.collect::<Result<_, String>>()?,
            spec,
        })
    }
}

impl World {
    fn dates(&self) -> Vec<Date> {
        let of_part = |(snapshots, _): &(RecordBatch, RecordBatch)| days(snapshots, "date");
        self.parts.iter().filter_map(of_part).flatten().map(Date).collect()
    }

    /// The first and the last date of a range of snapshots.
    fn range(&self, range: &Value, dates: &[Date]) -> Option<(Date, Date)> {
        let date = |end: &str| dates.get(usize::try_from(range[end].as_u64()?).ok()?).copied();
        Some((date("first")?, date("last")?))
    }

    /// The last date of training.
    fn trained_until(&self) -> Option<Date> {
        let dates = self.dates();
        let train = self.spec["splits"]["train"].as_array()?.last()?;
        Some(self.range(train, &dates)?.1)
    }

    fn ranges(&self) -> Option<Ranges> {
        let (dates, splits) = (self.dates(), &self.spec["splits"]);
        Some(Ranges {
            train: self.range(&splits["train"][0], &dates),
            test: self.range(&splits["test"], &dates)?,
        })
    }
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

fn days(batch: &RecordBatch, column: &str) -> Option<Vec<i32>> {
    Some(
        batch
            .column_by_name(column)?
            .as_primitive_opt::<Date32Type>()?
            .values()
            .to_vec(),
    )
}

/// The ranges of an environment; `None` if it is none of ours with dates, or holds out worlds rather than dates.
pub fn ranges(store: &Store, artifact: &Artifact) -> Option<Ranges> {
    let environment = Environment::read(store, artifact).ok()?;
    if !environment.spec["config"]["test"]["worlds"].is_null() {
        return None;
    }
    environment.worlds.first()?.ranges()
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
    let wrong = || "is not as `env/options` writes it".to_owned();
    let mut tables = Vec::new();
    for world in &environment.worlds {
        let mut snapshots = Vec::new();
        let mut quotes = Quotes::default();
        for (of_part, paths) in &world.parts {
            let contracts = contracts(paths).ok_or_else(wrong)?;
            let times = stamps(of_part).ok_or_else(wrong)?;
            snapshots.push(with_contracts(of_part, &contracts).ok_or_else(wrong)?);
            quotes.add(paths, contracts, &times).ok_or_else(wrong)?;
        }
        let schema = snapshots.first().map(RecordBatch::schema).ok_or("has no snapshots")?;
        let snapshots = arrow::compute::concat_batches(&schema, &snapshots).map_err(|err| err.to_string())?;
        let times = stamps(&snapshots).unwrap_or_default();
        let table = |name: &str, batch, times: Vec<Stamp>| Table {
            name: match (environment.worlds.len(), &world.spec["symbol"]) {
                (2.., Value::String(symbol)) => format!("{symbol}/{name}"),
                _ => name.to_owned(),
            },
            batch,
            date: Some(0),
            stamps: Some(times),
        };
        let (times_of_quotes, quotes) = quotes.table()?;
        tables.push(table("snapshots", snapshots, times));
        tables.push(table("contracts", quotes, times_of_quotes));
    }
    tables.push(fitted(&environment)?);
    Ok(tables)
}

/// The parts of `env.json` that were fitted on training dates.
fn fitted(environment: &Environment) -> Result<Table, String> {
    let spec = &environment.spec;
    let worlds = &environment.worlds;
    let known = worlds.iter().filter_map(World::trained_until).max();
    let begin = || worlds.first()?.dates().first().copied();
    // Without training dates nothing is fitted.
    let known = known.or_else(begin).ok_or("has no snapshots")?;
    let of_worlds =
        |field: &dyn Fn(&Value) -> Value| Value::Array(worlds.iter().map(|world| field(&world.spec)).collect());
    let rows = [
        ("normalisation", spec["env"]["normalisation"].clone()),
        ("observation", spec["env"]["observation"].clone()),
        ("warm_up", of_worlds(&|world| world["warm_up"].clone())),
        ("multiplier", spec["multiplier"].clone()),
        ("train", of_worlds(&|world| world["splits"]["train"].clone())),
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
