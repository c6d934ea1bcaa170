//! Data sets: ordered lists of partitions, the only form that a table of market data, features or Greeks has.
//!
//! An entry's path is `SYMBOL/FROM_TO.parquet` with the partition's first and last possible date, so that partitions of
//! two data sets made from one another have the same names and rows.

use crate::{Input, PortType, StageError, table};
use arrow::array::RecordBatch;
use cache::{ArtifactBuilder, ArtifactDigest, BlobRef, Store};
use datasets::{Date, DateRange};
use rayon::prelude::*;
use serde_json::Value;
use std::ops::Range;

/// What a partition holds: one symbol over a range of dates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionKey {
    /// The symbol; `rates` for rates.
    pub symbol: String,
    /// The first and last date it may hold.
    pub range: DateRange,
}

impl PartitionKey {
    /// The path of its entry.
    pub fn path(&self) -> String {
        format!("{}.parquet", self.name())
    }

    /// The path of its entry without its ending: what it is called in logs.
    pub fn name(&self) -> String {
        let symbol: String = self
            .symbol
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || "-_^.".contains(c) {
                    c
                } else {
                    '_'
                }
            })
            .collect();
        format!("{symbol}/{}_{}", self.range.from, self.range.to)
    }

    fn parse(path: &str) -> Option<Self> {
        let (symbol, rest) = path.rsplit_once('/')?;
        let (from, to) = rest.strip_suffix(".parquet")?.split_once('_')?;
        Some(Self {
            symbol: symbol.to_owned(),
            range: DateRange {
                from: from.parse().ok()?,
                to: to.parse().ok()?,
            },
        })
    }
}

/// How long a partition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Period {
    /// A day: for big chains.
    Day,
    /// A calendar month.
    Month,
    /// A calendar year: for bars and rates.
    Year,
}

impl Period {
    /// The partition's range that `date` falls in.
    pub fn range(self, date: Date) -> DateRange {
        let (year, month, _) = date.ymd();
        let day = |y, m, d| Date::from_ymd(y, m, d).unwrap_or(date);
        match self {
            Self::Day => DateRange { from: date, to: date },
            Self::Month => {
                let next = if month == 12 {
                    day(year + 1, 1, 1)
                } else {
                    day(year, month + 1, 1)
                };
                DateRange {
                    from: day(year, month, 1),
                    to: next.plus(-1),
                }
            }
            Self::Year => DateRange {
                from: day(year, 1, 1),
                to: day(year, 12, 31),
            },
        }
    }
}

/// A partition of a data set.
#[derive(Clone, Debug)]
pub struct Partition {
    /// What it holds.
    pub key: PartitionKey,
    /// Its bytes.
    pub blob: BlobRef,
}

impl Partition {
    /// Reads it.
    ///
    /// # Errors
    /// When its blob is missing, damaged or not a table.
    pub fn read(&self, store: &Store) -> Result<RecordBatch, StageError> {
        table::from_parquet(store.blob(self.blob.blob)?)
    }
}

/// A data set that was opened for reading.
#[derive(Clone, Debug)]
pub struct DataSet {
    /// What its kind says about it: units, currency, multiplier, `quality`.
    pub meta: Value,
    /// Its partitions, by symbol and then date.
    pub partitions: Vec<Partition>,
}

impl DataSet {
    /// Opens the data set at an input port.
    ///
    /// # Errors
    /// When an entry's name is not a partition's.
    pub fn open(input: &Input) -> Result<Self, StageError> {
        let partitions = input
            .artifact
            .entries
            .iter()
            .map(|entry| {
                let key = PartitionKey::parse(&entry.path)
                    .ok_or_else(|| StageError::new(format!("`{}` is not the name of a partition", entry.path)))?;
                Ok(Partition {
                    key,
                    blob: entry.blob_ref(),
                })
            })
            .collect::<Result<_, StageError>>()?;
        Ok(Self {
            meta: input.artifact.meta.clone(),
            partitions,
        })
    }

    /// The symbols in it, in order.
    pub fn symbols(&self) -> Vec<String> {
        let mut symbols: Vec<_> = self.partitions.iter().map(|p| p.key.symbol.clone()).collect();
        symbols.dedup();
        symbols
    }

    /// Reads every partition, in parallel, in order.
    ///
    /// # Errors
    /// As [`Partition::read`].
    pub fn read_all(&self, store: &Store) -> Result<Vec<RecordBatch>, StageError> {
        self.partitions
            .par_iter()
            .map(|partition| partition.read(store))
            .collect()
    }

    /// Reads the partitions of one symbol as one table; `None` when there are none.
    ///
    /// # Errors
    /// As [`Partition::read`].
    pub fn read_symbol(&self, store: &Store, symbol: &str) -> Result<Option<RecordBatch>, StageError> {
        let batches: Vec<_> = self
            .partitions
            .par_iter()
            .filter(|partition| partition.key.symbol == symbol)
            .map(|partition| partition.read(store))
            .collect::<Result<_, _>>()?;
        match batches.first() {
            None => Ok(None),
            Some(first) => Ok(Some(arrow::compute::concat_batches(&first.schema(), &batches)?)),
        }
    }
}

/// Stores a data set whose partitions are stored already, in order.
///
/// # Errors
/// When the store cannot be written.
pub fn write(
    store: &Store,
    ty: PortType,
    meta: Value,
    partitions: impl IntoIterator<Item = Partition>,
) -> Result<ArtifactDigest, StageError> {
    let mut builder = ArtifactBuilder::new(store, ty.name(), meta);
    for partition in partitions {
        builder.blob(&partition.key.path(), partition.blob);
    }
    Ok(builder.finish()?)
}

/// Cuts a table sorted by (symbol, date) into partitions and stores them, in parallel.
///
/// # Errors
/// When it has no `date` column or the store cannot be written. A table without a `symbol` column has the symbol `symbol`.
pub fn partition(
    store: &Store,
    batch: &RecordBatch,
    period: Period,
    symbol: &str,
) -> Result<Vec<Partition>, StageError> {
    let dates = table::dates(batch, "date")?;
    let symbols = table::texts(batch, "symbol").ok();
    let of = |i: usize| (symbols.map_or(symbol, |symbols| symbols.value(i)), dates[i]);
    let part = |rows: Range<usize>| Ok(batch.slice(rows.start, rows.len()));
    partition_rows(store, batch.num_rows(), period, of, part)
}

/// As [`partition`], for rows that are not a table yet: `of` is the symbol and date of a row, `part` makes a table of some.
///
/// # Errors
/// When `part` fails or the store cannot be written.
pub fn partition_rows<'s>(
    store: &Store,
    rows: usize,
    period: Period,
    of: impl Fn(usize) -> (&'s str, Date),
    part: impl Fn(Range<usize>) -> Result<RecordBatch, StageError> + Sync,
) -> Result<Vec<Partition>, StageError> {
    let mut cuts: Vec<(PartitionKey, Range<usize>)> = Vec::new();
    for i in 0..rows {
        let (symbol, date) = of(i);
        match cuts.last_mut() {
            Some((last, rows)) if last.range.contains(date) && last.symbol == symbol => rows.end = i + 1,
            _ => {
                let (symbol, range) = (symbol.to_owned(), period.range(date));
                cuts.push((PartitionKey { symbol, range }, i..i + 1));
            }
        }
    }
    cuts.into_par_iter()
        .map(|(key, rows)| {
            let bytes = table::to_parquet(&part(rows)?)?;
            Ok(Partition {
                key,
                blob: store.put(&bytes)?,
            })
        })
        .collect()
}
