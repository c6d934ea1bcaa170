//! The columns without a value at the moment of a decision, in whose place an environment shows the last one
//! known.

use cache::{Artifact, Store};
use datasets::{Date, SnapshotTime};
use runner_engine::{Collected, Failure, text};
use runner_pipeline::Node;
use stages_core::dataset::{DataSet, Partition, symbol_rows};
use stages_core::{Input, PortType, table};
use std::collections::{BTreeMap, BTreeSet};

/// The symbols and columns that a note lists.
const NAMED: usize = 5;

/// The days after which a day's value is old, where snapshots within a day show that of the day before.
const DAYS: i32 = 7;

/// The tables and features of the environment that a decision is made in.
pub(super) struct Shown(Vec<Input>);

/// The values of columns by symbol and time.
type BySymbol = BTreeMap<String, BTreeMap<SnapshotTime, BTreeMap<String, f64>>>;

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
            let times: BTreeSet<SnapshotTime> = rows.values().flat_map(BTreeMap::keys).copied().collect();
            // A day's values are known at its end, and shown on the next day.
            let of_day_before = time != date.to_string() && times.iter().all(|time| time.instant.is_none());
            let at = match of_day_before {
                true => times.range(..SnapshotTime::of_day(date)).next_back(),
                false => times.iter().find(|known| known.to_string() == time),
            };
            let at = at.filter(|at| at.date >= date.plus(-DAYS)).copied();
            let newest = times.last().copied();
            let is_shown = shown(observation, world, rows.len() == 1);
            let mut stale: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            for (symbol, of_symbol) in &rows {
                // Where others have a row, one that is missing is a finding of the rows.
                let row = match at {
                    Some(at) => of_symbol.get(&at),
                    None => of_symbol
                        .last_key_value()
                        .filter(|(last, _)| Some(**last) == newest)
                        .map(|(_, row)| row),
                };
                for (column, value) in row.into_iter().flatten() {
                    if (at.is_none() || value.is_nan()) && is_shown(symbol, column) {
                        stale.entry(column).or_default().push(symbol);
                    }
                }
            }
            if !stale.is_empty() {
                let named = |(column, symbols): (&&str, &Vec<&str>)| {
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

/// The last rows up to a day: those of the last two partitions of each group of symbols.
fn latest(store: &Store, input: &Input, date: Date) -> Result<BySymbol, Failure> {
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
    let mut all = BySymbol::new();
    for group in groups.values_mut() {
        group.sort_by_key(|partition| partition.key.range.from);
        for partition in group.iter().rev().take(2) {
            let batch = partition.read(store)?;
            // Features by contract are of a slate that changes.
            if batch.column_by_name("strike").is_some() || batch.column_by_name("symbol").is_none() {
                continue;
            }
            let times = table::snapshot_times(&batch)?;
            let schema = batch.schema();
            let names = schema.fields().iter().map(|field| field.name().as_str());
            let names: Vec<&str> = names.filter(|name| table::floats(&batch, name).is_ok()).collect();
            let columns = names.iter().map(|name| table::floats_or_nan(&batch, name));
            let columns: Vec<Vec<f64>> = columns.collect::<Result<_, _>>()?;
            for (symbol, range) in symbol_rows(&batch)? {
                let own = all.entry(symbol.to_owned()).or_default();
                for i in range.filter(|i| times[*i].date <= date) {
                    let values = names.iter().zip(&columns);
                    let row = values.map(|(name, column)| ((*name).to_owned(), column[i]));
                    own.insert(times[i], row.collect());
                }
            }
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
