//! Runs features over partitions, memoised by (feature, partition, state carried in), in parallel over symbols and features.

use crate::numerics::{Feature, State};
use arrow::array::{ArrayRef, Date32Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use cache::{BlobRef, Store};
use datasets::Date;
use datasets::schema::FEATURES;
use rayon::prelude::*;
use serde_json::{Value, json};
use stages_core::dataset::{self, Partition, PartitionKey};
use stages_core::{ConfigProblem, Context, Given, Memo, PortType, Provided, Share, StageError, table};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The rows of a partition, one for each date.
pub struct Rows<R> {
    /// The dates, ascending.
    pub dates: Vec<Date>,
    /// What features read.
    pub rows: R,
}

/// What a partition holds, as far as features read it, column by column: a value that no feature reads changes no key.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// Of the dates.
    pub dates: Vec<u8>,
    /// Of each input by its name ([`Feature::inputs`]).
    pub inputs: BTreeMap<&'static str, Vec<u8>>,
}

impl Contents {
    /// All that a feature's values in the partition depend on, beside the state carried in.
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

/// A partition of the source. Its rows are read when the first feature needs them, and no sooner.
pub struct SourcePartition<R> {
    /// What it holds.
    pub key: PartitionKey,
    /// The digests of its contents.
    pub contents: Contents,
    rows: OnceRows<R>,
}

/// Rows that are read when they are first asked for.
pub struct OnceRows<R>(Mutex<Option<Arc<Rows<R>>>>);

impl<R> Default for OnceRows<R> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<R> OnceRows<R> {
    /// The rows, which `load` reads.
    pub fn get(&self, load: impl FnOnce() -> Result<Rows<R>, StageError>) -> Result<Arc<Rows<R>>, StageError> {
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
    pub fn new(key: PartitionKey, contents: Contents, rows: OnceRows<R>) -> Self {
        Self { key, contents, rows }
    }
}

/// A feature with the text that names it, its settings and its version in keys.
pub struct Named<'a, R> {
    pub key: String,
    pub feature: &'a dyn Feature<R>,
}

impl<R> Named<'_, R> {
    /// Its values in a partition, and its state at the end of it, from the state at its start.
    fn memo(&self, partition: &SourcePartition<R>, state: &[f64]) -> Memo {
        let before: Vec<u8> = state.iter().flat_map(|value| value.to_le_bytes()).collect();
        let parts: [&[u8]; 3] = [self.key.as_bytes(), &partition.contents.read_by(self.feature), &before];
        let label = format!("{} {}", partition.key.name(), self.feature.columns().join(" "));
        Memo::new("features v2", &parts, label)
    }
}

/// The table of a partition, from the values of its features.
fn table_memo<R>(partition: &SourcePartition<R>, features: &[Named<'_, R>], values: &[BlobRef]) -> Memo {
    let mut parts: Vec<&[u8]> = vec![partition.key.symbol.as_bytes(), &partition.contents.dates];
    for (named, blob) in features.iter().zip(values) {
        parts.push(named.key.as_bytes());
        parts.push(blob.blob.as_bytes());
    }
    Memo::new("features table v2", &parts, format!("{} table", partition.key.name()))
}

/// How much of the features is known: columns by partition, each symbol's from its first partition on for as long as the
/// states carried over are known. `None` stands for a partition of which nothing is known.
pub fn share<R>(
    given: &Given<'_>,
    features: &[Named<'_, R>],
    partitions: &[(PartitionKey, Option<SourcePartition<R>>)],
) -> Result<Share, StageError> {
    let mut share = Share::new("columns", 0, (partitions.len() * features.len()) as u64);
    for symbol in partitions.chunk_by(|a, b| a.0.symbol == b.0.symbol) {
        for named in features {
            let mut state = named.feature.start();
            for (_, partition) in symbol {
                let Some(partition) = partition else { break };
                let Some(blob) = given.known(&named.memo(partition, &state))? else {
                    break;
                };
                state = read_values(given.store, blob, named.feature)?.0;
                share.cached += 1;
            }
        }
    }
    Ok(share)
}

/// The state at the end of a partition and the values of the feature in it, as bytes.
fn encode(state: &[f64], columns: &[Vec<f64>]) -> Vec<u8> {
    let mut bytes = (state.len() as u64).to_le_bytes().to_vec();
    for value in state.iter().chain(columns.iter().flatten()) {
        bytes.extend(value.to_le_bytes());
    }
    bytes
}

fn decode(bytes: &[u8], width: usize) -> Option<(State, Vec<Vec<f64>>)> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let values: Vec<f64> = rest
        .as_chunks::<8>()
        .0
        .iter()
        .map(|bytes| f64::from_le_bytes(*bytes))
        .collect();
    let (state, columns) = values.split_at_checked(length)?;
    let rows = columns.len() / width;
    if rows == 0 {
        return Some((state.to_vec(), vec![Vec::new(); width]));
    }
    Some((
        state.to_vec(),
        columns.chunks_exact(rows).map(<[f64]>::to_vec).collect(),
    ))
}

/// Runs every feature over every partition and stores the table of features: partitions as the source's.
///
/// `partitions` is ordered by symbol and then date; `load` reads the rows of one.
pub fn run<R: Send + Sync>(
    context: &Context,
    features: &[Named<'_, R>],
    partitions: &[SourcePartition<R>],
    meta: Value,
    load: impl Fn(&SourcePartition<R>) -> Result<Rows<R>, StageError> + Sync,
) -> Result<cache::ArtifactDigest, StageError> {
    let mut symbols: Vec<&[SourcePartition<R>]> = partitions.chunk_by(|a, b| a.key.symbol == b.key.symbol).collect();
    // A symbol's partitions stand together in a data set; be sure that each begins in a fresh state only once.
    symbols.sort_by(|a, b| a[0].key.symbol.cmp(&b[0].key.symbol));
    let (done, total) = (AtomicU64::new(0), (partitions.len() * features.len()) as u64);
    let tasks: Vec<(usize, usize)> = (0..symbols.len())
        .flat_map(|symbol| (0..features.len()).map(move |feature| (symbol, feature)))
        .collect();
    // For each symbol and feature, the blob of each partition.
    let blobs: Vec<Vec<BlobRef>> = tasks
        .par_iter()
        .map(|&(symbol, feature)| {
            let named = &features[feature];
            let mut state = named.feature.start();
            let mut blobs = Vec::new();
            for partition in symbols[symbol] {
                context.check_cancelled()?;
                let blob = context.memo(&named.memo(partition, &state), || {
                    let rows = partition.rows.get(|| load(partition))?;
                    let mut state = state.clone();
                    let columns = named.feature.over(&mut state, &rows.rows);
                    Ok(encode(&state, &columns))
                })?;
                state = read_values(&context.store, blob, named.feature)?.0;
                blobs.push(blob);
                let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                if done % 64 == 0 || done == total {
                    context.progress(done, Some(total), format!("features {}", partition.key.symbol));
                }
            }
            Ok(blobs)
        })
        .collect::<Result<_, StageError>>()?;
    let places: Vec<(usize, usize)> = symbols
        .iter()
        .enumerate()
        .flat_map(|(symbol, list)| (0..list.len()).map(move |i| (symbol, i)))
        .collect();
    let tables: Vec<Partition> = places
        .into_par_iter()
        .map(|(symbol, i)| {
            let partition = &symbols[symbol][i];
            let values: Vec<BlobRef> = (0..features.len())
                .map(|f| blobs[symbol * features.len() + f][i])
                .collect();
            let blob = context.memo(&table_memo(partition, features, &values), || {
                let rows = partition.rows.get(|| load(partition))?;
                assemble(context, &partition.key.symbol, &rows.dates, features, &values)
            })?;
            Ok(Partition {
                key: partition.key.clone(),
                blob,
            })
        })
        .collect::<Result<_, StageError>>()?;
    dataset::write(&context.store, PortType::Features, meta, tables)
}

fn read_values<R>(
    store: &Store,
    blob: BlobRef,
    feature: &dyn Feature<R>,
) -> Result<(State, Vec<Vec<f64>>), StageError> {
    decode(&store.blob(blob.blob)?, feature.columns().len())
        .ok_or_else(|| StageError::new(format!("the memo {} does not hold a feature's values", blob.blob)))
}

fn assemble<R>(
    context: &Context,
    symbol: &str,
    dates: &[Date],
    features: &[Named<'_, R>],
    values: &[BlobRef],
) -> Result<Vec<u8>, StageError> {
    let mut fields: Vec<Field> = FEATURES.iter().map(table::field).collect();
    let mut arrays: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(vec![symbol; dates.len()])),
        Arc::new(Date32Array::from(dates.iter().map(|date| date.0).collect::<Vec<_>>())),
    ];
    for (named, blob) in features.iter().zip(values) {
        let columns = read_values(&context.store, *blob, named.feature)?.1;
        for (name, column) in named.feature.columns().into_iter().zip(columns) {
            fields.push(Field::new(name, DataType::Float64, true));
            arrays.push(Arc::new(table::nullable(&column)));
        }
    }
    table::to_parquet(&RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}

/// The key of a feature: its version and its settings.
pub fn key(version: &str, settings: &impl serde::Serialize) -> Result<String, StageError> {
    let settings = serde_json::to_value(settings).map_err(|err| StageError::new(err.to_string()))?;
    Ok(format!("{version} {}", cache::canonical_json(&settings)))
}

/// Refuses two features with one name.
pub fn check_names(field: &str, names: impl IntoIterator<Item = Vec<String>>) -> Result<Vec<String>, ConfigProblem> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for (i, names) in names.into_iter().enumerate() {
        for name in names {
            if !seen.insert(name.clone()) {
                return Err(
                    ConfigProblem::new(format!("{field}[{i}]"), format!("`{name}` is there twice"))
                        .hint("remove one of them, or give it another period"),
                );
            }
            all.push(name);
        }
    }
    Ok(all)
}

/// The feature table that will come out.
pub fn provided(names: &[String]) -> Provided {
    let fixed = FEATURES.iter().map(|column| column.name.to_owned());
    Provided::columns(PortType::Features, fixed.chain(names.iter().cloned()))
}

/// The artifact's description of its columns.
pub fn meta(names: &[String]) -> Value {
    json!({ "features": names })
}
