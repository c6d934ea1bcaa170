//! The tables of environments over dates, by date, and what was fitted on their training dates.

mod options;
mod stocks;
mod tabular;

use super::moment::Stamp;
use super::read::Table;
use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, UInt32Type};
use arrow_array::{ArrayRef, Date32Array, RecordBatch, StringArray};
use arrow_ipc::reader::FileReader;
use cache::{Artifact, Store};
use datasets::Date;
use serde_json::{Value, json};
use std::io::Cursor;
use std::sync::Arc;

/// The stage kinds.
pub const KINDS: [&str; 3] = ["env/options", "env/stocks", "env/table"];

/// The ranges of an environment.
#[derive(Clone, Debug)]
pub struct Ranges {
    pub train: Option<(Date, Date)>,
    /// `None` where worlds are held out.
    pub test: Option<(Date, Date)>,
}

/// The family of an environment, by which its files are read.
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
    /// The snapshots and the contracts of each part; of stocks and of a table one, of all rows and nothing.
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
    arrow_select::concat::concat_batches(&schema, &batches).map_err(|err| err.to_string())
}

impl Environment {
    fn read(store: &Store, artifact: &Artifact) -> Result<Self, String> {
        let spec: Value =
            serde_json::from_slice(&file(store, artifact, "env.json")?).map_err(|err| err.to_string())?;
        let family = match artifact.meta["family"].as_str() {
            Some("stocks") => Family::Stocks,
            Some("table") => Family::Table,
            _ => Family::Options,
        };
        let read = |directory: &str, name: &str| {
            let path = format!("{directory}/{name}.arrow");
            arrow_file(&file(store, artifact, &path)?)
        };
        let names = |of: &Value| -> Vec<String> {
            let names = of["parts"].as_array().into_iter().flatten().filter_map(Value::as_str);
            names.map(str::to_owned).collect()
        };
        let worlds = || spec["worlds"].as_array().into_iter().flatten();
        let of_rows = |table: &str| -> Result<Vec<Vec<(RecordBatch, RecordBatch)>>, String> {
            let files: Vec<RecordBatch> = names(&spec)
                .iter()
                .map(|name| read(table, name))
                .collect::<Result<_, _>>()?;
            let rows = by_world(&files, worlds().count())?.into_iter();
            Ok(rows.map(|rows| vec![(rows.clone(), rows.slice(0, 0))]).collect())
        };
        let parts = match family {
            Family::Stocks => of_rows("panel")?,
            Family::Table => of_rows("table")?,
            Family::Options => {
                let pair = |name: &String| Ok((read(name, "snapshots")?, read(name, "paths")?));
                let of_world = |world: &Value| names(world).iter().map(pair).collect::<Result<_, String>>();
                worlds().map(of_world).collect::<Result<_, String>>()?
            }
        };
        let worlds = worlds().zip(parts).map(|(spec, parts)| World {
            parts,
            spec: spec.clone(),
        });
        Ok(Self {
            worlds: worlds.collect(),
            spec: spec.clone(),
            family,
        })
    }
}

/// The rows of each world, from the files of all worlds' parts.
fn by_world(files: &[RecordBatch], worlds: usize) -> Result<Vec<RecordBatch>, String> {
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
            let of_world = parts.get_mut(run[0] as usize).ok_or_else(wrong)?;
            of_world.push(file.slice(start, run.len()));
            start += run.len();
        }
    }
    let joined = |parts: &Vec<RecordBatch>| {
        let schema = parts.first().ok_or("has a world without rows")?.schema();
        arrow_select::concat::concat_batches(&schema, parts).map_err(|err| err.to_string())
    };
    parts.iter().map(joined).collect()
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

    /// The ranges from the first training date to the last, whatever lies between them: symbols of a table
    /// that begin and end as they like.
    fn whole_ranges(&self) -> Ranges {
        let first = self.ranges();
        Ranges {
            train: first.train.and_then(|(from, _)| Some((from, self.trained_until()?))),
            ..first
        }
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
    let environment = Environment::read(store, artifact).ok()?;
    let mut ranges = environment.worlds.iter().map(World::ranges);
    if environment.family == Family::Table && environment.spec["config"]["test"]["worlds"].is_null() {
        let all: Vec<Ranges> = environment.worlds.iter().map(World::whole_ranges).collect();
        let over = |of: fn(&Ranges) -> Option<(Date, Date)>| {
            let found = || all.iter().filter_map(of);
            Some((found().map(|range| range.0).min()?, found().map(|range| range.1).max()?))
        };
        let found = Ranges {
            train: over(|ranges| ranges.train),
            test: over(|ranges| ranges.test),
        };
        return Some(found).filter(|ranges| ranges.test.is_some());
    }
    if environment.spec["config"]["test"]["worlds"].is_null() {
        return ranges.next().filter(|ranges| ranges.test.is_some());
    }
    // Worlds that are held out have no training dates; the others have the same.
    let train = ranges.find_map(|ranges| ranges.train);
    train.map(|train| Ranges {
        train: Some(train),
        test: None,
    })
}

/// A configuration with these ranges written out: by fractions they would move with the last date.
pub fn with_ranges(config: &Value, ranges: &Ranges) -> Value {
    let range = |(from, to): (Date, Date)| json!({ "from": from.to_string(), "to": to.to_string() });
    let mut config = config.clone();
    config["train"] = ranges.train.map_or(Value::Null, range);
    if let Some(test) = ranges.test {
        config["test"] = range(test);
    }
    config
}

/// The tables of an environment: what it looks up by date, and what was fitted, which is known at the end of
/// training.
///
/// # Errors
/// When a file is not as the environment's stage writes it.
pub fn tables(store: &Store, artifact: &Artifact) -> Result<Vec<Table>, String> {
    let environment = Environment::read(store, artifact)?;
    let several = environment.worlds.len() > 1;
    let mut tables = Vec::new();
    for world in &environment.worlds {
        let of_world = match environment.family {
            Family::Stocks => stocks::tables(&environment.spec, world)?,
            Family::Table => vec![tabular::table(&environment.spec, world)?],
            Family::Options => options::tables(world)?.into(),
        };
        let name = world.spec["symbol"].as_str().or(world.spec["name"].as_str());
        tables.extend(of_world.into_iter().map(|mut table| {
            if let (true, Some(world)) = (several, name) {
                table.name = format!("{world}/{}", table.name);
            }
            table
        }));
    }
    tables.push(fitted(&environment)?);
    Ok(tables)
}

/// A table whose first column is the date.
fn table(name: &str, batch: RecordBatch, stamps: Vec<Stamp>) -> Table {
    Table {
        name: name.to_owned(),
        batch,
        date: Some(0),
        stamps: Some(stamps),
    }
}

/// The parts of `env.json` that were fitted on training dates.
fn fitted(environment: &Environment) -> Result<Table, String> {
    let spec = &environment.spec;
    let worlds = &environment.worlds;
    let known = worlds.iter().filter_map(World::trained_until).max();
    // Data that was cut off within the training dates does not bring their end forward.
    let planned = spec["config"]["train"]["to"]
        .as_str()
        .and_then(|date| date.parse().ok());
    let known = known.map(|known| planned.map_or(known, |planned: Date| planned.max(known)));
    let begin = || worlds.first()?.dates().first().copied();
    // Without training dates nothing is fitted.
    let known = known.or_else(begin).ok_or("has no snapshots")?;
    let of_worlds = |field: &dyn Fn(&Value) -> Value| {
        Value::Array(worlds.iter().map(|world| field(&world.spec)).collect())
    };
    let elements = match environment.family {
        Family::Stocks => stocks::elements(spec, worlds, known),
        Family::Options | Family::Table => vec![
            ("normalisation".to_owned(), spec["env"]["normalisation"].clone()),
            ("observation".to_owned(), spec["env"]["observation"].clone()),
        ],
    };
    let of_all = [
        ("warm_up", of_worlds(&|world| world["warm_up"].clone())),
        ("multiplier", spec["multiplier"].clone()),
        ("train", of_worlds(&|world| world["splits"]["train"].clone())),
    ];
    let of_all = of_all.map(|(name, value)| (name.to_owned(), value));
    let rows: Vec<(String, Value)> = elements.into_iter().chain(of_all).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "date",
            Arc::new(Date32Array::from_iter_values(rows.iter().map(|_| known.0))),
        ),
        (
            "name",
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.0))),
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
