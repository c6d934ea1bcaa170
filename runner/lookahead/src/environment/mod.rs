//! The tables of environments over dates, by date, and what was fitted on their training dates.

mod options;
mod panel;

use super::moment::{self, Stamp};
use super::table::Table;
use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int64Type, UInt32Type};
use arrow_array::{ArrayRef, Date32Array, RecordBatch, StringArray, UInt64Array};
use arrow_select::concat::concat_batches;
use arrow_select::take::take;
use bytes::Bytes;
use cache::{Artifact, Store};
use datasets::Date;
use serde_json::{Value, json};
use stages_table_file::Container;
use std::sync::Arc;

/// The stage kinds.
pub(crate) const KINDS: [&str; 3] = ["env/options", "env/stocks", "env/table"];

/// The date ranges of an environment.
#[derive(Clone, Debug)]
pub(crate) struct Ranges {
    pub train: Option<(Date, Date)>,
    /// `None` if worlds are held out.
    pub test: Option<(Date, Date)>,
}

/// The family of an environment, which determines how its files are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Options,
    Stocks,
    Table,
}

struct Environment {
    spec: Value,
    family: Family,
    worlds: Vec<World>,
}

/// A world of an environment.
struct World {
    spec: Value,
    /// The numbers of snapshots and contracts of each part; for stocks and tables, a single part with all
    /// rows and no contracts.
    parts: Vec<(RecordBatch, RecordBatch)>,
}

impl Environment {
    fn read(store: &Store, artifact: &Artifact) -> Result<Self, String> {
        let file = |path: &str| {
            let entry = artifact.entries.iter().find(|entry| entry.path == path);
            let entry = entry.ok_or_else(|| format!("has no file `{path}`"))?;
            store.blob(entry.blob).map_err(|err| err.to_string())
        };
        let spec: Value = serde_json::from_slice(&file("env.json")?).map_err(|err| err.to_string())?;
        let read = |directory: &str, name: &str| {
            let bytes = Bytes::from_owner(file(&format!("{directory}/{name}.arrow"))?);
            Container::ArrowFile.read(&bytes).map_err(|fault| fault.what)
        };
        let parts = |spec: &Value| -> Vec<String> {
            let names = spec["parts"].as_array().into_iter().flatten().filter_map(Value::as_str);
            names.map(str::to_owned).collect()
        };
        let worlds: Vec<Value> = spec["worlds"].as_array().cloned().unwrap_or_default();
        let rows = |table: &str| {
            let files: Vec<RecordBatch> = parts(&spec)
                .iter()
                .map(|name| read(table, name))
                .collect::<Result<_, _>>()?;
            by_world(&files, worlds.len())
        };
        let (family, parts): (_, Vec<_>) = match artifact.meta["family"].as_str() {
            Some("stocks") => (Family::Stocks, rows("panel")?),
            Some("table") => (Family::Table, rows("table")?),
            _ => {
                let pair = |name: &String| Ok((read(name, "snapshots")?, read(name, "paths")?));
                let pairs = |world| parts(world).iter().map(pair).collect::<Result<_, String>>();
                (Family::Options, worlds.iter().map(pairs).collect::<Result<_, _>>()?)
            }
        };
        let worlds = worlds.into_iter().zip(parts).map(|(spec, parts)| World { spec, parts });
        Ok(Self {
            worlds: worlds.collect(),
            spec,
            family,
        })
    }
}

/// The rows of each world, computed from the files of all worlds' parts.
fn by_world(files: &[RecordBatch], worlds: usize) -> Result<Vec<Vec<(RecordBatch, RecordBatch)>>, String> {
    let wrong = || "has rows of no world".to_owned();
    let mut parts = vec![Vec::new(); worlds];
    for file in files {
        let numbers = match file.column_by_name("world") {
            None => vec![0; file.num_rows()],
            Some(column) => column
                .as_primitive_opt::<UInt32Type>()
                .ok_or_else(wrong)?
                .values()
                .to_vec(),
        };
        let mut start = 0;
        for run in numbers.chunk_by(|a, b| a == b) {
            parts
                .get_mut(run[0] as usize)
                .ok_or_else(wrong)?
                .push(file.slice(start, run.len()));
            start += run.len();
        }
    }
    let joined = |parts: &Vec<RecordBatch>| {
        let schema = parts.first().ok_or("has a world without rows")?.schema();
        let rows = concat_batches(&schema, parts).map_err(|err| err.to_string())?;
        let nothing = rows.slice(0, 0);
        Ok(vec![(rows, nothing)])
    };
    parts.iter().map(joined).collect()
}

impl World {
    fn dates(&self) -> Vec<Date> {
        let part_dates = |(snapshots, _): &(RecordBatch, RecordBatch)| days(snapshots, "date");
        self.parts.iter().filter_map(part_dates).flatten().map(Date).collect()
    }

    /// The first and the last date in a range of snapshots.
    fn range(&self, range: &Value, dates: &[Date]) -> Option<(Date, Date)> {
        let date = |end: &str| dates.get(usize::try_from(range[end].as_u64()?).ok()?).copied();
        Some((date("first")?, date("last")?))
    }

    /// The last training date.
    fn trained_until(&self) -> Option<Date> {
        let dates = self.dates();
        let train = self.spec["splits"]["train"].as_array()?.last()?;
        Some(self.range(train, &dates)?.1)
    }

    fn ranges(&self) -> Ranges {
        let (dates, splits) = (self.dates(), &self.spec["splits"]);
        Ranges {
            train: self.range(&splits["train"][0], &dates),
            test: self.range(&splits["test"], &dates),
        }
    }
}

fn days(batch: &RecordBatch, column: &str) -> Option<Vec<i32>> {
    let column = batch.column_by_name(column)?;
    Some(column.as_primitive_opt::<Date32Type>()?.values().to_vec())
}

/// The times of rows: instants if there are several snapshots a day.
fn stamps(rows: &RecordBatch) -> Option<Vec<Stamp>> {
    if let Some(instants) = rows.column_by_name("instant") {
        let values = instants.as_fixed_size_list_opt()?.values();
        let values = values.as_primitive_opt::<Int64Type>()?.values();
        return Some(values.iter().map(|&at| Stamp::instant(at)).collect());
    }
    let days = || {
        Some(
            days(rows, "date")?
                .into_iter()
                .map(|day| Stamp::day(Date(day)))
                .collect(),
        )
    };
    moment::instants(rows).or_else(days)
}

/// Selects elements from a list of values.
fn element(values: &ArrayRef, places: impl Iterator<Item = usize>) -> Option<ArrayRef> {
    let places = UInt64Array::from_iter_values(places.map(|place| place as u64));
    take(values, &places, None).ok()
}

fn columns<const N: usize>(columns: [(&str, ArrayRef); N]) -> Vec<(String, ArrayRef)> {
    columns
        .into_iter()
        .map(|(name, array)| (name.to_owned(), array))
        .collect()
}

/// The keys of rows: the day, and a text.
fn keys<'a>(
    name: &str,
    days: impl Iterator<Item = i32>,
    texts: impl Iterator<Item = &'a str>,
) -> Vec<(String, ArrayRef)> {
    columns([
        ("date", Arc::new(Date32Array::from_iter_values(days)) as ArrayRef),
        (name, Arc::new(StringArray::from_iter_values(texts))),
    ])
}

/// The ranges of an environment; `None` if it is not a built-in environment with dates.
pub(crate) fn ranges(store: &Store, artifact: &Artifact) -> Option<Ranges> {
    let Environment { spec, family, worlds } = Environment::read(store, artifact).ok()?;
    // Held-out worlds have no training dates; all other worlds have the same ones.
    if !spec["config"]["test"]["worlds"].is_null() {
        let train = worlds.iter().find_map(|world| world.ranges().train)?;
        return Some(Ranges {
            train: Some(train),
            test: None,
        });
    }
    let found = match family {
        // The ranges extend from the first date of all to the last, whatever lies between them: symbols of a
        // table may begin and end at any date.
        Family::Table => {
            let all = |range: fn(&World) -> Option<(Date, Date)>| {
                let found = || worlds.iter().filter_map(range);
                Some((found().map(|range| range.0).min()?, found().map(|range| range.1).max()?))
            };
            Ranges {
                train: all(|world| Some((world.ranges().train?.0, world.trained_until()?))),
                test: all(|world| world.ranges().test),
            }
        }
        Family::Options | Family::Stocks => worlds.first()?.ranges(),
    };
    Some(found).filter(|ranges| ranges.test.is_some())
}

/// Writes the ranges explicitly into a configuration: ranges given as fractions would move with the last
/// date.
pub(crate) fn with_ranges(config: &Value, ranges: &Ranges) -> Value {
    let range = |(from, to): (Date, Date)| json!({ "from": from.to_string(), "to": to.to_string() });
    let mut config = config.clone();
    config["train"] = ranges.train.map_or(Value::Null, range);
    if let Some(test) = ranges.test {
        config["test"] = range(test);
    }
    config
}

/// The tables of an environment: the values that it looks up by date, and the values that were fitted, which
/// are known at the end of training.
pub(crate) fn tables(store: &Store, artifact: &Artifact) -> Result<Vec<Table>, String> {
    let environment = Environment::read(store, artifact)?;
    let Environment { spec, family, worlds } = &environment;
    let mut tables = Vec::new();
    for world in worlds {
        let (found, kind) = match family {
            Family::Options => (options::tables(world), KINDS[0]),
            Family::Stocks => (panel::tables(spec, world), KINDS[1]),
            Family::Table => (panel::rows(spec, world), KINDS[2]),
        };
        let name = world.spec["symbol"].as_str().or(world.spec["name"].as_str());
        for mut table in found.ok_or_else(|| format!("is not as `{kind}` writes it"))? {
            if let (true, Some(world)) = (worlds.len() > 1, name) {
                table.name = format!("{world}/{}", table.name);
            }
            tables.push(table);
        }
    }
    tables.push(fitted(&environment)?);
    Ok(tables)
}

/// The parts of `env.json` that were fitted on training dates.
fn fitted(environment: &Environment) -> Result<Table, String> {
    let Environment { spec, family, worlds } = environment;
    let known = worlds.iter().filter_map(World::trained_until).max();
    // Data that is truncated within the training dates does not move their end forward.
    let planned: Option<Date> = spec["config"]["train"]["to"]
        .as_str()
        .and_then(|date| date.parse().ok());
    let known = known.map(|known| planned.map_or(known, |planned| planned.max(known)));
    let begin = || worlds.first()?.dates().first().copied();
    // Without training dates nothing is fitted.
    let known = known.or_else(begin).ok_or("has no snapshots")?;
    let by_worlds =
        |field: fn(&Value) -> &Value| worlds.iter().map(|world| field(&world.spec).clone()).collect();
    let mut rows: Vec<(String, Value)> = match family {
        Family::Stocks => panel::elements(spec, worlds, known),
        Family::Options | Family::Table => ["normalisation", "observation"]
            .map(|name| (name.to_owned(), spec["env"][name].clone()))
            .into(),
    };
    rows.push(("warm_up".to_owned(), by_worlds(|world| &world["warm_up"])));
    rows.push(("multiplier".to_owned(), spec["multiplier"].clone()));
    rows.push(("train".to_owned(), by_worlds(|world| &world["splits"]["train"])));
    let names = rows.iter().map(|row| row.0.as_str());
    let mut all = keys("name", rows.iter().map(|_| known.0), names);
    let values = StringArray::from_iter_values(rows.iter().map(|row| row.1.to_string()));
    all.push(("value".to_owned(), Arc::new(values)));
    let batch = RecordBatch::try_from_iter(all);
    let stamps = vec![Stamp::day(known); rows.len()];
    Ok(Table::named("env.json", batch.map_err(|err| err.to_string())?, stamps))
}
