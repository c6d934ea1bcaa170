//! Runs features over partitions, in parallel over features, partitions and symbols. Results are memoised by
//! feature, partition and the states before the partition.

use super::values::{self, Values};
use crate::numerics::{Feature, State};
use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema};
use cache::{ArtifactDigest, BlobRef};
use datasets::schema::FEATURES;
use datasets::{Date, SnapshotTime};
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

/// The rows of one symbol in a partition: one for each date or, with several snapshots a day, for each
/// snapshot.
pub(super) struct Series<R> {
    /// The symbol.
    pub symbol: String,
    /// The times, ascending.
    pub times: Vec<SnapshotTime>,
    /// The rows that features read.
    pub rows: R,
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
    fn read_by<R>(&self, feature: &dyn Feature<R>) -> Vec<u8> {
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
pub(super) struct OnceRows<R>(Mutex<Option<Arc<Vec<Series<R>>>>>);

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
        load: impl FnOnce() -> Result<Vec<Series<R>>, StageError>,
    ) -> Result<Arc<Vec<Series<R>>>, StageError> {
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
pub(super) struct Named<'a, R> {
    pub key: String,
    pub feature: &'a dyn Feature<R>,
}

impl<R> Named<'_, R> {
    /// The memo of the feature's values in a partition and its states at the end, given the states of the
    /// partition's symbols at the beginning.
    fn memo(&self, partition: &SourcePartition<R>, states: &[State]) -> Memo {
        let states: Vec<u8> = states.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
        let parts: [&[u8]; 3] = [self.key.as_bytes(), &partition.contents.read_by(self.feature), &states];
        let label = format!("{} {}", partition.key.name(), self.feature.columns().join(" "));
        Memo::new("features v3", &parts, label)
    }
}

/// The memo of a partition's table, keyed by the values of its features.
fn table_memo<R>(partition: &SourcePartition<R>, features: &[Named<'_, R>], values: &[BlobRef]) -> Memo {
    let mut parts: Vec<&[u8]> = vec![&partition.contents.dates];
    parts.extend(partition.contents.symbols.iter().map(String::as_bytes));
    for (named, blob) in features.iter().zip(values) {
        parts.push(named.key.as_bytes());
        parts.push(blob.blob.as_bytes());
    }
    Memo::new("features table v3", &parts, format!("{} table", partition.key.name()))
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
pub(super) fn share<R>(
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
            let cached = match before {
                Some(before) => given.known(&named.memo(partition, &before))?,
                None => None,
            };
            match cached {
                Some(blob) => {
                    share.cached += 1;
                    let bytes = given.store.blob(blob.blob)?;
                    for (symbol, values) in symbols.iter().zip(values::decode(&bytes, named.feature)?) {
                        states.insert(symbol, Some(values.state()));
                    }
                }
                None => states.extend(symbols.iter().map(|symbol| (symbol.as_str(), None))),
            }
        }
    }
    Ok(share)
}

/// Runs all features over all partitions, and stores the feature table in the same partitions as the source.
///
/// The partitions of a symbol must be in order of date; `load` reads the rows of the partition with a given
/// index.
pub(super) fn run<R: Send + Sync>(
    context: &Context,
    features: &[Named<'_, R>],
    partitions: &[SourcePartition<R>],
    meta: Value,
    load: impl Fn(usize) -> Result<Vec<Series<R>>, StageError> + Sync,
) -> Result<ArtifactDigest, StageError> {
    let dates = by_date(partitions.iter().map(|partition| &partition.key));
    let (done, total) = (AtomicU64::new(0), (partitions.len() * features.len()) as u64);
    // The values of each feature, by index of the partition.
    let blobs: Vec<BTreeMap<usize, BlobRef>> = features
        .par_iter()
        .map(|named| {
            let mut states: HashMap<&str, State> = HashMap::new();
            let mut blobs = BTreeMap::new();
            for date in &dates {
                let results: Vec<(usize, BlobRef, Vec<State>)> = date
                    .par_iter()
                    .map(|&i| {
                        context.check_cancelled()?;
                        let partition = &partitions[i];
                        let before = |symbol: &String| match states.get(symbol.as_str()) {
                            Some(state) => state.clone(),
                            None => named.feature.start(),
                        };
                        let before: Vec<State> = partition.contents.symbols.iter().map(before).collect();
                        let rows = || partition.rows.get(|| load(i));
                        let (blob, after) = advance(context, named, partition, before, rows)?;
                        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                        if done % 64 == 0 || done == total {
                            context.progress(
                                done,
                                Some(total),
                                format!("features {}", partition.key.symbols),
                            );
                        }
                        Ok((i, blob, after))
                    })
                    .collect::<Result<_, StageError>>()?;
                for (i, blob, after) in results {
                    blobs.insert(i, blob);
                    let symbols = partitions[i].contents.symbols.iter().map(String::as_str);
                    states.extend(symbols.zip(after));
                }
            }
            Ok(blobs)
        })
        .collect::<Result<_, StageError>>()?;
    let tables: Vec<Partition> = partitions
        .par_iter()
        .enumerate()
        .map(|(i, partition)| {
            let values: Vec<BlobRef> = blobs.iter().map(|blobs| blobs[&i]).collect();
            let blob = context.memo(&table_memo(partition, features, &values), || {
                assemble(context, &partition.rows.get(|| load(i))?, features, &values)
            })?;
            Ok(Partition {
                key: partition.key.clone(),
                blob,
            })
        })
        .collect::<Result<_, StageError>>()?;
    dataset::write(&context.store, PortType::Features, meta, tables)
}

/// Runs a feature over a partition, starting from the states of the partition's symbols. Returns the blob of
/// the values, and the states afterwards.
fn advance<R: Send + Sync>(
    context: &Context,
    named: &Named<'_, R>,
    partition: &SourcePartition<R>,
    before: Vec<State>,
    rows: impl FnOnce() -> Result<Arc<Vec<Series<R>>>, StageError>,
) -> Result<(BlobRef, Vec<State>), StageError> {
    let mut after = None;
    let blob = context.memo(&named.memo(partition, &before), || {
        let (states, columns): (Vec<State>, Vec<Vec<Vec<f64>>>) = rows()?
            .par_iter()
            .zip(before)
            .map(|(series, mut state)| {
                let columns = named.feature.over(&mut state, &series.rows);
                (state, columns)
            })
            .unzip();
        let bytes = values::encode(&states, &columns);
        after = Some(states);
        Ok(bytes)
    })?;
    let after = match after {
        Some(after) => after,
        None => {
            let bytes = context.store.blob(blob.blob)?;
            values::decode(&bytes, named.feature)?
                .iter()
                .map(Values::state)
                .collect()
        }
    };
    Ok((blob, after))
}

/// The table of a partition as Parquet.
fn assemble<R>(
    context: &Context,
    rows: &[Series<R>],
    features: &[Named<'_, R>],
    values: &[BlobRef],
) -> Result<Vec<u8>, StageError> {
    let symbols = rows
        .iter()
        .flat_map(|series| std::iter::repeat_n(series.symbol.as_str(), series.times.len()));
    let times = rows.iter().flat_map(|series| &series.times).copied();
    let (mut fields, mut arrays) = table::feature_keys(symbols, times);
    for (named, blob) in features.iter().zip(values) {
        let bytes = context.store.blob(blob.blob)?;
        let values = values::decode(&bytes, named.feature)?;
        for (k, name) in named.feature.columns().into_iter().enumerate() {
            fields.push(Field::new(name, DataType::Float64, true));
            let column = values.iter().flat_map(|values| values.column(k)).collect();
            arrays.push(Arc::new(table::nullable_of(column)));
        }
    }
    table::to_parquet(&RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
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
