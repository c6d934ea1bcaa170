//! Reads bars for features, and runs features over them.

use super::engine::{self, Contents, Named, OnceRows, PartitionRows, SourcePartition};
use super::price::{ACTIONS_IN, Price};
use super::splits::Splits;
use crate::numerics::{Bars, Column, Feature, OverSplits, SHARES};
use arrow_array::{Array as _, RecordBatch};
use cache::parallel::locked;
use cache::{BlobDigest, BlobRef, Store};
use datasets::Date;
use datasets::schema::FEATURES;
use serde::{Deserialize, Serialize};
use stages_core::dataset::{DataSet, Partition, PartitionKey, symbol_rows};
use stages_core::{
    ConfigProblem, Context, Given, InputPort, Memo, Outputs, PlanContext, Planned, PortType, Share,
    StageError, table,
};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Mutex;

/// The input port of bars.
pub(super) const BARS_IN: InputPort = InputPort::one("bars", PortType::Bars).doc("daily bars");

/// Checks the features of a stage, and returns what its output provides. Item i of the setting `field` makes
/// the features from index `each` * i on.
pub(super) fn check_features<F: Feature<Bars>>(
    field: &str,
    features: &[F],
    each: usize,
    plan: &PlanContext,
    price: Price,
) -> Planned {
    let names = engine::check_names(field, features.iter().map(Feature::columns))?;
    for (i, feature) in features.iter().enumerate() {
        check_inputs(plan, &format!("{field}[{}]", i / each), feature, price)?;
    }
    Ok([("features".to_owned(), engine::provided(&names))].into())
}

/// Features with their keys, which consist of the kind and its version and of the result of `settings` for
/// each feature.
pub(super) fn named<'a, F: Feature<Bars>, S: Serialize>(
    kind: &str,
    features: &'a [F],
    settings: impl Fn(&'a F) -> S,
) -> Result<Vec<Named<'a, Bars>>, StageError> {
    let named = |feature: &'a F| {
        let key = engine::key(kind, &settings(feature))?;
        Ok(Named { key, feature })
    };
    features.iter().map(named).collect()
}

/// Refuses features whose inputs the bars lack.
fn check_inputs(
    plan: &PlanContext,
    field: &str,
    feature: &dyn Feature<Bars>,
    price: Price,
) -> Result<(), ConfigProblem> {
    ConfigProblem::new("price", "adjusted closes are adjusted for splits already")
        .hint("leave out `actions`, or take `price: close`")
        .when(price == Price::AdjustedClose && plan.inputs.contains_key(ACTIONS_IN.name))?;
    let Some(bars) = plan.inputs.get("bars").and_then(|list| list.first()) else {
        return Ok(());
    };
    for input in needed(feature, price) {
        ConfigProblem::new(field, lacks(feature, input, "the bars at `bars`"))
            .hint("remove it, take features of the close alone, or read bars that have it")
            .when(!bars.may_have(input))?;
    }
    Ok(())
}

fn needed(feature: &dyn Feature<Bars>, price: Price) -> BTreeSet<&'static str> {
    let mut inputs: BTreeSet<_> = feature.inputs().into_iter().collect();
    if price == Price::AdjustedClose {
        inputs.extend(["close", "adjusted_close"]);
    }
    inputs
}

fn lacks(feature: &dyn Feature<Bars>, input: &str, source: &str) -> String {
    format!(
        "`{}` needs `{input}`, which {source} have no values of",
        feature.columns().join("`, `")
    )
}

/// Runs features over the bars at the port `bars`.
pub(super) fn run_over_bars(
    context: &Context,
    features: &[Named<'_, Bars>],
    price: Price,
) -> Result<Outputs, StageError> {
    let bars = DataSet::open(context.input("bars")?)?;
    let splits = Splits::held(context, &bars, price)?;
    let bars = bars.partitions;
    let splits = splits.as_ref();
    let over: Vec<OverSplits<'_>> = features.iter().map(|named| OverSplits(named.feature)).collect();
    let over = over_splits(features, &over);
    let features = if splits.is_some() { &*over } else { features };
    let read = |i: usize| BarTable::read(&context.store, &bars[i], price, splits);
    let empty = Mutex::new(EmptyColumns::new());
    let source = |i: usize| {
        let (partition, rows) = (&bars[i], OnceRows::default());
        let blob = context.memo(&contents_memo(partition, price, splits), || {
            let table = read(i)?;
            let contents = serde_json::to_vec(&BarContents::new(&table));
            rows.get(|| table.rows())?;
            contents.map_err(|err| StageError::new(err.to_string()))
        })?;
        let contents = BarContents::decode(&context.store.blob(blob.blob)?)?;
        let digests = contents.digests();
        keep_empty(&mut locked(&empty), contents.symbols);
        Ok(SourcePartition::new(partition.key.clone(), digests, rows))
    };
    let names: Vec<String> = features.iter().flat_map(|named| named.feature.columns()).collect();
    let keys: Vec<PartitionKey> = bars.iter().map(|partition| partition.key.clone()).collect();
    let digest = engine::run(context, features, &keys, engine::meta(&names), source, |i| {
        read(i)?.rows()
    })?;
    check_values(features, price, &locked(&empty))?;
    Ok(Outputs::from([("features".to_owned(), digest)]))
}

/// Features made insensitive to splits, with keys of their own.
fn over_splits<'a>(features: &[Named<'_, Bars>], over: &'a [OverSplits<'_>]) -> Vec<Named<'a, Bars>> {
    let of = features.iter().zip(over);
    of.map(|(named, over)| Named {
        key: format!("{} over splits v2", named.key),
        feature: over,
    })
    .collect()
}

/// The columns without any value, by symbol.
type EmptyColumns = BTreeMap<String, BTreeSet<String>>;

/// Keeps the columns that have no value in one more partition either.
fn keep_empty(empty: &mut EmptyColumns, partition: Vec<SymbolContents>) {
    for contents in partition {
        let here = contents.empty.into_iter().collect();
        match empty.entry(contents.symbol) {
            Entry::Vacant(entry) => drop(entry.insert(here)),
            Entry::Occupied(mut entry) => entry.get_mut().retain(|column| here.contains(column)),
        }
    }
}

/// Refuses a feature if one of its inputs has no value in any partition of a symbol, which the plan may not
/// have known. The partitioning of the bars does not matter: a month without volume counts as a warm-up or a
/// gap, as it would within a year.
fn check_values(features: &[Named<'_, Bars>], price: Price, empty: &EmptyColumns) -> Result<(), StageError> {
    for (symbol, empty) in empty.iter().filter(|(_, empty)| !empty.is_empty()) {
        for named in features {
            if let Some(input) = needed(named.feature, price)
                .iter()
                .find(|input| empty.contains(**input))
            {
                let source = format!("the bars of {symbol}");
                return Err(StageError::new(lacks(named.feature, input, &source))
                    .hint("remove it, take features of the close alone, or read bars that have it"));
            }
        }
    }
    Ok(())
}

/// The cached share of the features over the bars at the port `bars`.
pub(super) fn share_over_bars(
    given: &Given<'_>,
    features: &[Named<'_, Bars>],
    price: Price,
) -> Result<Share, StageError> {
    let splits = Splits::open(given, price)?;
    let over: Vec<OverSplits<'_>> = features.iter().map(|named| OverSplits(named.feature)).collect();
    let over = over_splits(features, &over);
    let features = if splits.is_some() { &*over } else { features };
    let mut partitions = Vec::new();
    for partition in DataSet::open(given.input("bars")?)?.partitions {
        let source = match given.known(&contents_memo(&partition, price, splits.as_ref()))? {
            Some(blob) => {
                let contents = BarContents::decode(&given.store.blob(blob.blob)?)?;
                let digests = contents.digests();
                Some(SourcePartition::new(
                    partition.key.clone(),
                    digests,
                    OnceRows::default(),
                ))
            }
            None => None,
        };
        partitions.push((partition.key, source));
    }
    engine::share(given, features, &partitions)
}

/// The memo of the digests of a partition's bars.
fn contents_memo(partition: &Partition, price: Price, splits: Option<&Splits>) -> Memo {
    let price = [u8::from(price == Price::AdjustedClose)];
    let splits = splits.map(|splits| splits.text(&partition.key));
    let mut parts: Vec<&[u8]> = vec![partition.blob.blob.as_bytes(), &price];
    parts.extend(splits.iter().map(String::as_bytes));
    Memo::new(
        "features bars contents v4",
        &parts,
        format!("{} contents", partition.key.name()),
    )
}

/// The columns of bars that features read.
const READ: [Column; 5] = [Column::Open, Column::High, Column::Low, Column::Close, Column::Volume];

/// The digests of the contents of a partition of bars.
#[derive(Serialize, Deserialize)]
struct BarContents {
    symbols: Vec<SymbolContents>,
    /// The digest of the dates, symbol by symbol.
    dates: BlobDigest,
    /// The digests of the columns [`READ`].
    columns: Vec<BlobDigest>,
    /// The digest of [`Bars::shares`], if splits are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shares: Option<BlobDigest>,
}

/// The facts known of one symbol's bars.
#[derive(Serialize, Deserialize)]
struct SymbolContents {
    symbol: String,
    /// The columns without any value.
    empty: Vec<String>,
}

impl BarContents {
    fn new(table: &BarTable) -> Self {
        let symbols = table.symbols.iter().map(|(symbol, rows)| {
            let part = table.batch.slice(rows.start, rows.len());
            let schema = part.schema();
            let empty = schema.fields().iter().zip(part.columns());
            let empty = empty.filter(|(_, column)| column.null_count() == column.len());
            SymbolContents {
                symbol: symbol.clone(),
                empty: empty.map(|(field, _)| field.name().clone()).collect(),
            }
        });
        let dates = table.symbols.iter().map(|(_, rows)| &table.dates[rows.clone()]);
        let bars = || table.bars.iter();
        Self {
            symbols: symbols.collect(),
            dates: digest(dates, |date| date.0.to_le_bytes()),
            columns: READ
                .map(|column| digest(bars().map(|bars| column.of(bars)), f64::to_le_bytes))
                .into(),
            shares: bars()
                .any(|bars| !bars.shares.is_empty())
                .then(|| digest(bars().map(|bars| &*bars.shares), f64::to_le_bytes)),
        }
    }

    fn decode(bytes: &[u8]) -> Result<Self, StageError> {
        serde_json::from_slice(bytes)
            .ok()
            .filter(|contents: &Self| contents.columns.len() == READ.len())
            .ok_or_else(|| StageError::new("a memo of the contents of bars is damaged"))
    }

    fn digests(&self) -> Contents {
        Contents {
            symbols: self.symbols.iter().map(|symbol| symbol.symbol.clone()).collect(),
            dates: self.dates.as_bytes().to_vec(),
            inputs: READ
                .iter()
                .zip(&self.columns)
                .map(|(column, digest)| (column.name(), digest))
                .chain(self.shares.iter().map(|digest| (SHARES, digest)))
                .map(|(name, digest)| (name, digest.as_bytes().to_vec()))
                .collect(),
        }
    }
}

/// The digest of each symbol's values, including their number.
fn digest<'s, T: Copy + 's, const N: usize>(
    symbols: impl Iterator<Item = &'s [T]>,
    bytes_of: impl Fn(T) -> [u8; N],
) -> BlobDigest {
    const { assert!(8 % N == 0, "a length consists of whole chunks") };
    let mut bytes: Vec<[u8; N]> = Vec::new();
    for values in symbols {
        bytes.extend((values.len() as u64).to_le_bytes().as_chunks::<N>().0);
        bytes.extend(values.iter().map(|value| bytes_of(*value)));
    }
    BlobRef::of(bytes.as_flattened()).blob
}

/// The bars of a partition.
pub(super) struct BarTable {
    batch: RecordBatch,
    /// The symbols, each with the range of its rows.
    pub symbols: Vec<(String, Range<usize>)>,
    /// The date of each row.
    pub dates: Vec<Date>,
    /// The bars of each symbol.
    pub bars: Vec<Bars>,
}

impl BarTable {
    /// Reads a partition.
    pub(super) fn read(
        store: &Store,
        partition: &Partition,
        price: Price,
        splits: Option<&Splits>,
    ) -> Result<Self, StageError> {
        let is_adjusted = price == Price::AdjustedClose;
        let mut names: Vec<&str> = FEATURES.iter().map(|column| column.name).collect();
        names.extend(READ.map(Column::name));
        names.extend(is_adjusted.then_some("adjusted_close"));
        let batch = table::columns_from_parquet(store.blob(partition.blob.blob)?, &names)?;
        let dates = table::dates(&batch, "date")?;
        let symbols: Vec<_> = symbol_rows(&batch)?
            .into_iter()
            .map(|(symbol, rows)| (symbol.to_owned(), rows))
            .collect();
        let bars = symbols.iter().map(|(symbol, rows)| {
            let batch = batch.slice(rows.start, rows.len());
            let column = |name| table::floats_or_nan(&batch, name);
            let mut bars = Bars {
                open: column("open")?,
                high: column("high")?,
                low: column("low")?,
                close: column("close")?,
                volume: column("volume")?,
                shares: Vec::new(),
            };
            if is_adjusted {
                let adjusted = column("adjusted_close")?;
                for prices in [&mut bars.open, &mut bars.high, &mut bars.low] {
                    for (price, (adjusted, close)) in prices.iter_mut().zip(adjusted.iter().zip(&bars.close))
                    {
                        *price *= adjusted / close;
                    }
                }
                bars.close = adjusted;
            }
            if let Some(splits) = splits {
                splits.apply(symbol, &dates[rows.clone()], &mut bars);
            }
            Ok(bars)
        });
        Ok(Self {
            bars: bars.collect::<Result<_, StageError>>()?,
            batch,
            symbols,
            dates,
        })
    }

    /// The rows from which features are computed.
    fn rows(self) -> Result<PartitionRows<Bars>, StageError> {
        Ok(PartitionRows {
            keys: table::key_columns(&self.batch, FEATURES)?,
            symbols: self.bars,
        })
    }
}
