//! The columns without a value at the moment of a decision, in whose place an environment shows the last one
//! known.

use cache::{Artifact, Store};
use datasets::{Date, SnapshotTime};
use runner_engine::{Collected, Failure, text};
use runner_pipeline::Node;
use stages_core::dataset::{DataSet, Partition, symbol_rows};
use stages_core::{Input, PortType, table};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The symbols and columns that a note lists.
const NAMED: usize = 5;

/// The days after which a day's value is old, where snapshots within a day show that of the day before.
const DAYS: i32 = 7;

/// The tables and features of the environment that a decision is made in.
pub(super) struct Shown(Vec<Input>);

/// The columns of numbers of a partition, whose rows are of symbols one after the other.
struct Rows {
    times: Vec<SnapshotTime>,
    symbols: Vec<(String, Range<usize>)>,
    columns: Vec<(String, Vec<f64>)>,
}

impl Shown {
    /// The tables and features that the stage `env` was given in a run.
    pub(super) fn new(store: &Store, env: &Node, run: &Collected) -> Result<Self, Failure> {
        let made = env.needs.values().flatten().filter_map(|need| {
            let mut outputs = run.outputs(need.node);
            outputs
                .find(|(name, _)| **name == need.output)
                .map(|(_, digest)| digest)
        });
        let earlier = env.earlier.values().flatten().map(|earlier| earlier.digest);
        let mut inputs = Vec::new();
        for digest in made.chain(earlier) {
            let artifact: Artifact = store.artifact(digest)?;
            if [PortType::Table.name(), PortType::Features.name()].contains(&artifact.kind.as_str()) {
                inputs.push(Input { digest, artifact });
            }
        }
        Ok(Self(inputs))
    }

    /// Notes on the elements of the observation that have no value at the snapshot `time`, as printed, of the
    /// day `date` in a world.
    pub(super) fn stale(
        &self,
        store: &Store,
        observation: &[String],
        world: &str,
        (time, date): (&str, Date),
    ) -> Result<Vec<String>, Failure> {
        let mut notes = Vec::new();
        for input in &self.0 {
            let rows = latest(store, input, date)?;
            let times = rows
                .iter()
                .flat_map(|rows| &rows.times)
                .filter(|time| time.date <= date);
            let times: BTreeSet<SnapshotTime> = times.copied().collect();
            // A day's values are known at its end, and shown on the next day.
            let of_day_before = time != date.to_string() && times.iter().all(|time| time.instant.is_none());
            let at = match of_day_before {
                true => times.range(..SnapshotTime::of_day(date)).next_back(),
                false => times.iter().find(|known| known.to_string() == time),
            };
            let at = at.filter(|at| at.date >= date.plus(-DAYS));
            // Where others have a row, one that is missing is a finding of the rows.
            let Some(row) = at.or(times.last()) else { continue };
            let symbols: BTreeSet<&str> = rows
                .iter()
                .flat_map(|rows| &rows.symbols)
                .map(|(symbol, _)| symbol.as_str())
                .collect();
            let is_shown = shown(observation, world, symbols.len() == 1);
            let mut stale: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
            for of_part in &rows {
                for (symbol, range) in &of_part.symbols {
                    for i in range.clone().filter(|i| of_part.times[*i] == *row) {
                        let empty = of_part
                            .columns
                            .iter()
                            .filter(|(_, values)| at.is_none() || values[i].is_nan());
                        for (column, _) in empty.filter(|(column, _)| is_shown(symbol, column)) {
                            stale.entry(column).or_default().insert(symbol);
                        }
                    }
                }
            }
            if !stale.is_empty() {
                let named = |(column, symbols): (&&str, &BTreeSet<&str>)| {
                    format!("{column} of {}", text::some(symbols.iter().copied(), NAMED))
                };
                let all: Vec<String> = stale.iter().map(named).collect();
                notes.push(format!(
                    "columns without a value at {time} show the last one known: {}",
                    text::some(all.iter().map(String::as_str), NAMED)
                ));
            }
        }
        Ok(notes)
    }
}

/// The rows of the last two partitions up to a day of each group of symbols.
fn latest(store: &Store, input: &Input, date: Date) -> Result<Vec<Rows>, Failure> {
    let set = DataSet::open(input)?;
    let mut groups: BTreeMap<String, Vec<&Partition>> = BTreeMap::new();
    for partition in set
        .partitions
        .iter()
        .filter(|partition| partition.key.range.from <= date)
    {
        let group = groups.entry(format!("{:?}", partition.key.symbols)).or_default();
        group.push(partition);
    }
    let mut all = Vec::new();
    for group in groups.values_mut() {
        group.sort_by_key(|partition| partition.key.range.from);
        for partition in group.iter().rev().take(2) {
            let batch = partition.read(store)?;
            // Features by contract are of a slate that changes.
            if batch.column_by_name("strike").is_some() || batch.column_by_name("symbol").is_none() {
                continue;
            }
            let schema = batch.schema();
            let names = schema.fields().iter().map(|field| field.name());
            let symbols = symbol_rows(&batch)?.into_iter();
            all.push(Rows {
                times: table::snapshot_times(&batch)?,
                symbols: symbols.map(|(symbol, range)| (symbol.to_owned(), range)).collect(),
                // Other columns are no numbers.
                columns: names
                    .filter_map(|name| Some((name.clone(), table::floats_or_nan(&batch, name).ok()?)))
                    .collect(),
            });
        }
    }
    Ok(all)
}

/// Tells whether an observation shows a column of a symbol; `is_single` where there is no other symbol.
fn shown<'o>(observation: &'o [String], world: &'o str, is_single: bool) -> impl Fn(&str, &str) -> bool + 'o {
    let names: BTreeSet<&str> = observation.iter().map(String::as_str).collect();
    // Of several worlds, each symbol of which is a number.
    let is_numbered = observation.iter().any(|name| name.starts_with("stock["));
    move |symbol, column| {
        let by_name = names.contains(column) || names.contains(format!("market.{column}").as_str());
        let ending = format!(".{column}");
        let by_symbol = || names.iter().any(|name| name.ends_with(&ending));
        names.contains(format!("{symbol}.{column}").as_str())
            || by_name && (is_single || symbol == world)
            || (is_single || is_numbered) && by_symbol()
    }
}
