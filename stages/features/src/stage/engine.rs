//! Runs features over partitions, in parallel over features, partitions and symbols. Results are memoised by
//! feature, partition and the states before the partition: a memo holds the states after it and names the
//! table that has the values, which are stored once.

use super::values::TableStates;
use crate::numerics::{Feature, Rows, State};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use cache::{ArtifactDigest, BlobRef, Store};
use datasets::Date;
use datasets::schema::FEATURES;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stages_core::dataset::{self, DataSet, Partition, PartitionKey, Symbols};
use stages_core::{
    ConfigProblem, Context, Given, Memo, PeriodsAYear, PortType, Provided, Share, StageError, table,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The rows of a partition.
pub(super) struct PartitionRows<R> {
    /// The key columns of the partition's feature table, with their fields.
    pub keys: (Vec<Field>, Vec<ArrayRef>),
    /// The rows that features read, for each of [`Contents::symbols`], ascending in time.
    pub symbols: Vec<R>,
}

/// The digests of a partition's contents, column by column, so that values which a feature does not read do
/// not affect its key.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    /// The symbols of the partition, in order.
    pub symbols: Vec<String>,
    /// The digests of the dates, symbol by symbol.
    pub dates: Vec<u8>,
    /// The digests of each input, symbol by symbol, keyed by the input's name ([`Feature::inputs`]).
    pub inputs: BTreeMap<&'static str, Vec<u8>>,
}

impl Contents {
    /// The digests of the inputs that a feature reads.
    fn read_by<R: Rows>(&self, feature: &dyn Feature<R>) -> Vec<u8> {
        let names: BTreeSet<&str> = feature.inputs().into_iter().collect();
        names
            .into_iter()
            .filter_map(|name| self.inputs.get(name))
            .flatten()
            .copied()
            .collect()
    }
}

/// A partition of the source data set. The rows are read when the first feature needs them.
pub(super) struct SourcePartition<R> {
    /// The symbols and dates of the partition.
    pub key: PartitionKey,
    /// The digests of the partition's contents.
    pub contents: Contents,
    rows: OnceRows<R>,
}

/// Rows that are read on first use.
pub(super) struct OnceRows<R>(Mutex<Option<Arc<PartitionRows<R>>>>);

impl<R> Default for OnceRows<R> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<R> OnceRows<R> {
    /// The rows, read by `load` if necessary. `load` must not run tasks on the thread pool: such a task may
    /// wait for these very rows, which would be a deadlock.
    pub(super) fn get(
        &self,
        load: impl FnOnce() -> Result<PartitionRows<R>, StageError>,
    ) -> Result<Arc<PartitionRows<R>>, StageError> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rows) = &*slot {
            return Ok(rows.clone());
        }
        let rows = Arc::new(load()?);
        *slot = Some(rows.clone());
        Ok(rows)
    }
}

impl<R> SourcePartition<R> {
    pub(super) fn new(key: PartitionKey, contents: Contents, rows: OnceRows<R>) -> Self {
        Self { key, contents, rows }
    }
}

/// A feature with its key, a text that stands for its settings and version.
pub(super) struct Named<'a, R: Rows> {
    pub key: String,
    pub feature: &'a dyn Feature<R>,
}

impl<R: Rows> Named<'_, R> {
    /// The memo of the feature's states at the end of a partition and of the table with its values, given the
    /// states of the partition's symbols at the beginning.
    fn memo(&self, partition: &SourcePartition<R>, states: &[State]) -> Memo {
        let states: Vec<[u8; 8]> = states.iter().flatten().map(|value| value.to_le_bytes()).collect();
        let read = partition.contents.read_by(self.feature);
        let parts: [&[u8]; 3] = [self.key.as_bytes(), &read, states.as_flattened()];
        let label = format!("{} {}", partition.key.name(), self.feature.columns().join(" "));
        Memo::new("features v4", &parts, label)
    }
}

/// The memo of a partition's table, keyed by the memos of its features.
fn table_memo<R: Rows>(
    partition: &SourcePartition<R>,
    features: &[Named<'_, R>],
    columns: &[Column],
) -> Memo {
    let mut parts: Vec<&[u8]> = vec![&partition.contents.dates];
    parts.extend(partition.contents.symbols.iter().map(String::as_bytes));
    for (named, column) in features.iter().zip(columns) {
        parts.push(named.key.as_bytes());
        parts.push(column.memo.key.as_bytes());
    }
    Memo::new("features table v4", &parts, format!("{} table", partition.key.name()))
}

/// The indices of partitions, grouped by first date; partitions of the same date have no symbol in common.
fn by_date<'k>(keys: impl Iterator<Item = &'k PartitionKey>) -> Vec<Vec<usize>> {
    let mut dates: BTreeMap<Date, Vec<usize>> = BTreeMap::new();
    for (i, key) in keys.enumerate() {
        dates.entry(key.range.from).or_default().push(i);
    }
    dates.into_values().collect()
}

/// The cached share of the features, counted as columns by partition. A symbol's columns count as long as the
/// states before them are cached. `None` stands for a partition whose contents are not cached.
pub(super) fn share<R: Rows>(
    given: &Given<'_>,
    features: &[Named<'_, R>],
    partitions: &[(PartitionKey, Option<SourcePartition<R>>)],
) -> Result<Share, StageError> {
    let mut share = Share::new("columns", 0, (partitions.len() * features.len()) as u64);
    let order: Vec<usize> = by_date(partitions.iter().map(|(key, _)| key)).concat();
    for named in features {
        // `None` if the state of a symbol is not cached.
        let mut states: HashMap<&str, Option<State>> = HashMap::new();
        for &i in &order {
            let (key, partition) = &partitions[i];
            let Some(partition) = partition else {
                match &key.symbols {
                    Symbols::One(symbol) => states.insert(symbol, None),
                    Symbols::Several { .. } => break,
                };
                continue;
            };
            let symbols = &partition.contents.symbols;
            let before: Option<Vec<State>> = symbols
                .iter()
                .map(|symbol| match states.get(symbol.as_str()) {
                    Some(state) => state.clone(),
                    None => Some(named.feature.start()),
                })
                .collect();
            let after = match before {
                Some(before) => {
                    let memo = named.memo(partition, &before);
                    let value = given.known(&memo)?;
                    value
                        .map(|value| known(given.store, &memo, value, symbols.len()))
                        .transpose()?
                        .flatten()
                }
                None => None,
            };
            share.cached += u64::from(after.is_some());
            let after = after.map_or(vec![None; symbols.len()], |known| {
                known.0.into_iter().map(Some).collect()
            });
            states.extend(symbols.iter().map(String::as_str).zip(after));
        }
    }
    Ok(share)
}

/// The values of a feature in a partition.
enum Values {
    /// In a stored table.
    Stored(BlobRef),
    /// Computed, column by column.
    Computed(Vec<Vec<f64>>),
}

/// A feature in a partition.
struct Column {
    memo: Memo,
    /// The states of the partition's symbols at its end.
    states: Vec<State>,
    values: Values,
}

/// A feature's states and the table with its values, by the value of its memo; `None` if the table is gone.
fn known(
    store: &Store,
    memo: &Memo,
    value: BlobRef,
    symbols: usize,
) -> Result<Option<(Vec<State>, BlobRef)>, StageError> {
    let found = TableStates::decode(&store.blob(value.blob)?)?;
    let table = found.table;
    if !store.has(table) {
        return Ok(None);
    }
    Ok(Some((found.of(memo.key, symbols)?, table)))
}

/// Runs all features over all partitions, and stores the feature table in the same partitions as the source.
///
/// The partitions of a symbol must be in order of date. `source` opens the partition with a given index of
/// `keys`, and `load` reads its rows. As many partitions as threads are in memory at a time.
pub(super) fn run<R: Rows + Send + Sync>(
    context: &Context,
    features: &[Named<'_, R>],
    keys: &[PartitionKey],
    meta: Value,
    source: impl Fn(usize) -> Result<SourcePartition<R>, StageError> + Sync,
    load: impl Fn(usize) -> Result<PartitionRows<R>, StageError> + Sync,
) -> Result<ArtifactDigest, StageError> {
    let (done, total) = (AtomicU64::new(0), keys.len() as u64);
    // The states of each feature, by symbol.
    let mut states: HashMap<String, Vec<State>> = HashMap::new();
    let mut tables: Vec<Option<BlobRef>> = vec![None; keys.len()];
    for batch in by_date(keys.iter()).concat().chunks(rayon::current_num_threads()) {
        let opened: Vec<(usize, SourcePartition<R>)> = batch
            .par_iter()
            .map(|&i| Ok((i, source(i)?)))
            .collect::<Result<_, StageError>>()?;
        let mut pending = Vec::with_capacity(batch.len());
        for group in opened.chunk_by(|(_, a), (_, b)| a.key.range.from == b.key.range.from) {
            let advanced: Vec<Advanced> = group
                .par_iter()
                .map(|(i, partition)| Advanced::over(context, features, partition, &states, || load(*i)))
                .collect::<Result<_, StageError>>()?;
            for ((_, partition), advanced) in group.iter().zip(&advanced) {
                for (s, symbol) in partition.contents.symbols.iter().enumerate() {
                    let after = advanced.columns.iter().map(|column| column.states[s].clone());
                    states.insert(symbol.clone(), after.collect());
                }
            }
            pending.extend(advanced);
        }
        let written: Vec<(usize, BlobRef)> = opened
            .into_par_iter()
            .zip(pending)
            .map(|((i, partition), advanced)| {
                let table = advanced.write(context, features, || partition.rows.get(|| load(i)))?;
                let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                if done % 16 == 0 || done == total {
                    let of = format!("features {}", partition.key.symbols);
                    context.progress(done, Some(total), of);
                }
                Ok((i, table))
            })
            .collect::<Result<_, StageError>>()?;
        written.into_iter().for_each(|(i, table)| tables[i] = Some(table));
    }
    let of = |(key, table): (&PartitionKey, Option<BlobRef>)| {
        let (key, blob) = (key.clone(), table?);
        Some(Partition { key, blob })
    };
    let tables: Vec<Partition> = keys.iter().zip(tables).filter_map(of).collect();
    dataset::write(&context.store, PortType::Features, meta, tables)
}

/// The features of a partition whose table is still to be written.
struct Advanced {
    columns: Vec<Column>,
    /// The memo of the table.
    memo: Memo,
    /// The table, if it is stored.
    table: Option<BlobRef>,
}

impl Advanced {
    /// Runs the features over a partition, starting from `states`, or from the beginning for a symbol without
    /// any.
    fn over<R: Rows + Send + Sync>(
        context: &Context,
        features: &[Named<'_, R>],
        partition: &SourcePartition<R>,
        states: &HashMap<String, Vec<State>>,
        load: impl Fn() -> Result<PartitionRows<R>, StageError> + Sync,
    ) -> Result<Self, StageError> {
        context.check_cancelled()?;
        let symbols = &partition.contents.symbols;
        let columns: Vec<Column> = features
            .par_iter()
            .enumerate()
            .map(|(f, named)| {
                let before = symbols.iter().map(|symbol| match states.get(symbol) {
                    Some(states) => states[f].clone(),
                    None => named.feature.start(),
                });
                let before: Vec<State> = before.collect();
                let memo = named.memo(partition, &before);
                let found =
                    context.cached(&memo, |value| known(&context.store, &memo, value, symbols.len()))?;
                let (states, values) = match found {
                    Some((states, table)) => (states, Values::Stored(table)),
                    None => {
                        let rows = partition.rows.get(&load)?;
                        let (states, columns) = compute(named.feature, &rows.symbols, before);
                        (states, Values::Computed(columns))
                    }
                };
                Ok(Column { memo, states, values })
            })
            .collect::<Result<_, StageError>>()?;
        let memo = table_memo(partition, features, &columns);
        Ok(Self {
            table: context.cached(&memo, |table| Ok(Some(table)))?,
            columns,
            memo,
        })
    }

    /// Stores the table and the memos. Returns the table.
    fn write<R: Rows>(
        mut self,
        context: &Context,
        features: &[Named<'_, R>],
        rows: impl FnOnce() -> Result<Arc<PartitionRows<R>>, StageError>,
    ) -> Result<BlobRef, StageError> {
        let is_stored = |column: &Column| matches!(column.values, Values::Stored(_));
        let table = match self.table {
            Some(table) if self.columns.iter().all(is_stored) => return Ok(table),
            Some(table) => table,
            None => context.compute_memo(&self.memo, || {
                assemble(context, rows()?.keys.clone(), features, &mut self.columns)
            })?,
        };
        let states = self
            .columns
            .iter_mut()
            .map(|column| (column.memo.key, std::mem::take(&mut column.states)));
        let states = states.collect();
        let bytes = TableStates { table, states }.encode();
        let value = context.store.put(&bytes)?;
        for Column { memo, values, .. } in &self.columns {
            match values {
                // The newest table has the values, too, and is the likeliest to stay.
                Values::Stored(_) => context.store.put_memo(memo.key, value)?,
                Values::Computed(_) => drop(context.compute_memo(memo, || Ok(bytes.clone()))?),
            }
        }
        Ok(table)
    }
}

/// The values of a feature, column by column, and the states of the symbols afterwards.
fn compute<R: Rows + Send + Sync>(
    feature: &dyn Feature<R>,
    rows: &[R],
    before: Vec<State>,
) -> (Vec<State>, Vec<Vec<f64>>) {
    let total = rows.iter().map(R::count).sum();
    let mut columns = vec![vec![0.0; total]; feature.columns().len()];
    let mut rest: Vec<&mut [f64]> = columns.iter_mut().map(Vec::as_mut_slice).collect();
    let parts: Vec<Vec<&mut [f64]>> = rows
        .iter()
        .map(|rows| {
            let part = rest.iter_mut().map(|rest| {
                let (part, after) = std::mem::take(rest).split_at_mut(rows.count());
                *rest = after;
                part
            });
            part.collect()
        })
        .collect();
    let states = rows
        .par_iter()
        .zip(before)
        .zip(parts)
        .with_min_len(16)
        .map(|((rows, mut state), mut part)| {
            feature.write(&mut state, rows, &mut part);
            state
        })
        .collect();
    (states, columns)
}

/// The table of a partition as Parquet: the columns that were computed, and the others from the tables that
/// have them.
fn assemble<R: Rows>(
    context: &Context,
    (mut fields, mut arrays): (Vec<Field>, Vec<ArrayRef>),
    features: &[Named<'_, R>],
    columns: &mut [Column],
) -> Result<Vec<u8>, StageError> {
    for (named, column) in features.iter().zip(columns) {
        let names = named.feature.columns();
        fields.extend(names.iter().map(|name| Field::new(name, DataType::Float64, true)));
        match &mut column.values {
            Values::Stored(known) => {
                let wanted: Vec<&str> = names.iter().map(String::as_str).collect();
                let stored = table::columns_from_parquet(context.store.blob(known.blob)?, &wanted)?;
                for name in wanted {
                    arrays.push(Arc::new(table::floats(&stored, name)?.clone()));
                }
            }
            Values::Computed(values) => {
                let arrays_of = std::mem::take(values).into_iter().map(table::nullable_of);
                arrays.extend(arrays_of.map(|array| Arc::new(array) as ArrayRef));
            }
        }
    }
    table::plain_to_parquet(&RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?, |_| true)
}

/// The key of a feature: its version and its settings.
pub(super) fn key(version: &str, settings: &impl Serialize) -> Result<String, StageError> {
    let settings = serde_json::to_value(settings).map_err(|err| StageError::new(err.to_string()))?;
    Ok(format!("{version} {}", cache::canonical_json(&settings)))
}

/// Refuses a window of fewer than `least` rows, or of too many; `unit` names the rows in the message.
pub(super) fn check_window(
    field: String,
    window: usize,
    least: usize,
    unit: &str,
) -> Result<(), ConfigProblem> {
    let message = format!("a window has from {least} to 10000 {unit}, not {window}");
    ConfigProblem::new(field, message).when(!(least..=10_000).contains(&window))
}

/// The trading days a year by which the variance of a day is annualised: `auto` or a number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum DaysAYear {
    /// `auto`: those of the data, by its calendar and its dates.
    Auto(Auto),
    /// So many.
    Days(f64),
}

/// The word `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Auto {
    /// Those of the data.
    Auto,
}

impl DaysAYear {
    /// The default.
    pub(super) const AUTO: Self = Self::Auto(Auto::Auto);

    /// Refuses an impossible number.
    pub(super) fn check(self) -> Result<(), ConfigProblem> {
        let Self::Days(days) = self else { return Ok(()) };
        let message = format!("{days} is not a number of trading days a year");
        let problem = ConfigProblem::new("days_a_year", message)
            .hint("leave it out for that of the data's calendar; 252 is usual");
        problem.when(!(days > 0.0 && days <= 366.0))
    }

    /// The number, for the data at a port.
    pub(super) fn resolve(self, given: &Given<'_>, port: &str) -> Result<f64, StageError> {
        match self {
            Self::Days(days) => Ok(days),
            Self::Auto(_) => {
                let set = DataSet::open(given.input(port)?)?;
                Ok(PeriodsAYear::of_set(&set, given.store)?.value)
            }
        }
    }
}

/// Refuses features with the same name.
pub(super) fn check_names(
    field: &str,
    names: impl IntoIterator<Item = Vec<String>>,
) -> Result<Vec<String>, ConfigProblem> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for (i, names) in names.into_iter().enumerate() {
        for name in names {
            ConfigProblem::new(format!("{field}[{i}]"), format!("`{name}` is there twice"))
                .hint("remove one of them, or give it another period")
                .when(!seen.insert(name.clone()))?;
            all.push(name);
        }
    }
    Ok(all)
}

/// The columns of the feature table, which are known before the run.
pub(super) fn provided(names: &[String]) -> Provided {
    let fixed = FEATURES.iter().map(|column| column.name.to_owned());
    Provided::columns(PortType::Features, fixed.chain(names.iter().cloned()))
}

/// The metadata of the artifact: the names of its features.
pub(super) fn meta(names: &[String]) -> Value {
    json!({ "features": names })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cache::ActionKey;
    use datasets::DateRange;
    use std::sync::atomic::AtomicUsize;

    /// Rows that count how many partitions are in memory.
    struct Held<'a>(&'a AtomicUsize);

    impl Rows for Held<'_> {
        fn count(&self) -> usize {
            1
        }
    }

    impl Drop for Held<'_> {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// The number of rows so far.
    struct Count;

    impl Feature<Held<'_>> for Count {
        fn columns(&self) -> Vec<String> {
            vec!["count".to_owned()]
        }

        fn inputs(&self) -> Vec<&'static str> {
            Vec::new()
        }

        fn start(&self) -> State {
            vec![0.0]
        }

        fn write(&self, state: &mut State, rows: &Held<'_>, columns: &mut [&mut [f64]]) {
            state[0] += rows.count() as f64;
            columns[0].fill(state[0]);
        }
    }

    #[test]
    fn as_many_partitions_as_threads_are_in_memory_and_states_go_from_date_to_date() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let context = Context::new(ActionKey::from_bytes([0; 32]), store.clone());
        let (held, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let features = [Named {
            key: "count".to_owned(),
            feature: &Count as &dyn Feature<Held<'_>>,
        }];
        // Three dates, each with two symbols.
        let key = |i: usize| {
            let day = Date((i / 2) as i32);
            PartitionKey::new(["A", "B"][i % 2], DateRange { from: day, to: day })
        };
        let keys: Vec<PartitionKey> = (0..6).map(key).collect();
        let source = |i: usize| {
            let symbols = vec![keys[i].symbol()?.to_owned()];
            let contents = Contents {
                symbols,
                dates: vec![i as u8],
                ..Contents::default()
            };
            Ok(SourcePartition::new(keys[i].clone(), contents, OnceRows::default()))
        };
        let load = |i: usize| {
            most.fetch_max(1 + held.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
            let time = datasets::SnapshotTime::of_day(keys[i].range.from);
            Ok(PartitionRows {
                keys: table::feature_keys([keys[i].symbol()?], [time]),
                symbols: vec![Held(&held)],
            })
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let run = || run(&context, &features, &keys, json!({}), source, load).unwrap();
        let artifact = store.artifact(pool.install(run)).unwrap();
        assert_eq!((most.into_inner(), held.into_inner()), (2, 0));
        let counts = artifact.entries.iter().map(|entry| {
            let table = table::from_parquet(store.blob(entry.blob_ref().blob).unwrap()).unwrap();
            table::floats(&table, "count").unwrap().value(0)
        });
        assert_eq!(counts.collect::<Vec<f64>>(), [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]);
    }
}
