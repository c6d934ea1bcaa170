//! Data sets: ordered lists of partitions, the only form that a table of market data, features or Greeks has.
//!
//! A partition holds the rows of one symbol, or of several neighbouring ones, over a range of dates, sorted
//! by symbol and then date. Option chains and tables derived from them have one symbol in each, bars and
//! their features as many as fit into [`PARTITION_ROWS`]. An entry's path is `SYMBOL/FROM_TO.parquet` or
//! `FIRST..LAST/FROM_TO.parquet` with the partition's first and last possible date, so that partitions of two
//! data sets made from one another have the same names and rows.

use crate::error::StageError;
use crate::input::Input;
use crate::port::PortType;
use crate::table;
use crate::visible::visible_line;
use arrow_array::{Array as _, RecordBatch};
use cache::{ArtifactBuilder, ArtifactDigest, BlobRef, Store, check_path};
use datasets::schema::SNAPSHOT;
use datasets::{Date, DateRange};
use rayon::prelude::*;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

/// The most rows of a partition of several symbols: a year of daily bars of 260 symbols, some megabytes.
pub const PARTITION_ROWS: usize = 1 << 16;

/// The symbols of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Symbols {
    /// One symbol; `rates` for rates.
    One(String),
    /// Several symbols, in the order of their bytes.
    Several {
        /// The first of them.
        first: String,
        /// The last of them.
        last: String,
    },
}

impl Symbols {
    /// The first of them.
    pub fn first(&self) -> &str {
        match self {
            Self::One(first) | Self::Several { first, .. } => first,
        }
    }
}

impl fmt::Display for Symbols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(symbol) => f.write_str(symbol),
            Self::Several { first, last } => write!(f, "{first}..{last}"),
        }
    }
}

/// The contents of a partition: symbols over a range of dates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionKey {
    /// Its symbols.
    pub symbols: Symbols,
    /// The first and last date it may hold.
    pub range: DateRange,
}

impl PartitionKey {
    /// The key of a partition of one symbol.
    pub fn new(symbol: impl Into<String>, range: DateRange) -> Self {
        Self {
            symbols: Symbols::One(symbol.into()),
            range,
        }
    }

    /// The symbol of a partition that holds one.
    ///
    /// # Errors
    /// When it holds several.
    pub fn symbol(&self) -> Result<&str, StageError> {
        match &self.symbols {
            Symbols::One(symbol) => Ok(symbol),
            Symbols::Several { .. } => Err(StageError::new(format!(
                "the partition `{}` holds several symbols, where one is expected",
                self.name()
            ))),
        }
    }

    /// The path of its entry.
    pub fn path(&self) -> String {
        format!("{}.parquet", self.name())
    }

    /// The path of its entry without its extension, as logs show it.
    pub fn name(&self) -> String {
        let symbols = match &self.symbols {
            Symbols::One(symbol) => encode(symbol),
            Symbols::Several { first, last } => format!("{}..{}", encode(first), encode(last)),
        };
        format!("{symbols}/{}_{}", self.range.from, self.range.to)
    }

    /// The key that a path names, of which it is that of the entry.
    pub fn parse(path: &str) -> Option<Self> {
        let (symbols, rest) = path.rsplit_once('/')?;
        let (from, to) = rest.strip_suffix(".parquet")?.split_once('_')?;
        Some(Self {
            symbols: match symbols.split_once("..") {
                None => Symbols::One(decode(symbols)?),
                Some((first, last)) => Symbols::Several {
                    first: decode(first)?,
                    last: decode(last)?,
                },
            },
            range: DateRange {
                from: from.parse().ok()?,
                to: to.parse().ok()?,
            },
        })
    }
}

/// A symbol as part of a path: letters and digits of ASCII and `-_^.` as they are, every other byte in hex,
/// `%E4`, so that the paths of different symbols differ in any script. A dot at an end or after another is no
/// plain one: `..` stands between symbols; nor is a `-` at the start.
fn encode(symbol: &str) -> String {
    let bytes = symbol.as_bytes();
    let is_plain = |i: usize| match bytes[i] {
        b'.' => i > 0 && i + 1 < bytes.len() && bytes[i - 1] != b'.',
        // Programs take a name that starts with it for an option.
        b'-' => i > 0,
        byte => byte.is_ascii_alphanumeric() || b"_^".contains(&byte),
    };
    let mut text = String::with_capacity(symbol.len());
    for (i, &byte) in bytes.iter().enumerate() {
        if is_plain(i) {
            text.push(byte.into());
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

/// Reads the output of [`encode`].
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        if *byte == b'%' {
            let (digits, after) = after.split_first_chunk::<2>()?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = after;
        } else {
            bytes.push(*byte);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

/// The period of a partition.
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

/// The rows of a day from which a day is a partition of its own.
const DAY_ROWS: usize = 5000;

impl Period {
    /// The period of a table whose first day has `rows` rows: days where they are many, and otherwise
    /// `small`.
    pub fn of_rows(rows: usize, small: Self) -> Self {
        if rows > DAY_ROWS { Self::Day } else { small }
    }

    /// The period that `date` falls in.
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
    /// Its symbols and dates.
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

    /// Reads the rows of a symbol; `None` where it has none.
    pub fn read_symbol(&self, store: &Store, symbol: &str) -> Result<Option<RecordBatch>, StageError> {
        match &self.key.symbols {
            Symbols::One(one) if one == symbol => self.read(store).map(Some),
            Symbols::One(_) => Ok(None),
            Symbols::Several { .. } => {
                let batch = self.read(store)?;
                let rows = symbol_rows(&batch)?.into_iter().find(|(other, _)| *other == symbol);
                Ok(rows.map(|(_, rows)| batch.slice(rows.start, rows.len())))
            }
        }
    }
}

/// The symbols of a table sorted by symbol, each with its rows.
///
/// # Errors
/// When it has no `symbol` column.
pub fn symbol_rows(batch: &RecordBatch) -> Result<Vec<(&str, Range<usize>)>, StageError> {
    let symbols = table::texts(batch, "symbol")?;
    let mut runs: Vec<(&str, Range<usize>)> = Vec::new();
    for i in 0..symbols.len() {
        match runs.last_mut() {
            Some((last, rows)) if *last == symbols.value(i) => rows.end = i + 1,
            _ => runs.push((symbols.value(i), i..i + 1)),
        }
    }
    Ok(runs)
}

/// A data set opened for reading.
#[derive(Clone, Debug)]
pub struct DataSet {
    /// The metadata of its kind: units, currency, multiplier, `quality`.
    pub meta: Value,
    /// Its partitions, in order: those of a symbol by date.
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
                let key = PartitionKey::parse(&entry.path).ok_or_else(|| {
                    StageError::new(format!("`{}` is not the name of a partition", entry.path))
                })?;
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

    /// The symbols in it, sorted.
    ///
    /// # Errors
    /// When a partition of several symbols cannot be read.
    pub fn symbols(&self, store: &Store) -> Result<Vec<String>, StageError> {
        let symbols: Vec<Vec<String>> = self
            .partitions
            .par_iter()
            .map(|partition| match &partition.key.symbols {
                Symbols::One(symbol) => Ok(vec![symbol.clone()]),
                Symbols::Several { .. } => {
                    let batch = table::columns_from_parquet(store.blob(partition.blob.blob)?, &["symbol"])?;
                    Ok(symbol_rows(&batch)?
                        .into_iter()
                        .map(|(symbol, _)| symbol.to_owned())
                        .collect())
                }
            })
            .collect::<Result<_, StageError>>()?;
        let symbols: BTreeSet<String> = symbols.into_iter().flatten().collect();
        Ok(symbols.into_iter().collect())
    }

    /// Returns whether it has several snapshots a day, with the column [`SNAPSHOT`].
    ///
    /// # Errors
    /// When its first partition is missing, damaged or not a table.
    pub fn is_intraday(&self, store: &Store) -> Result<bool, StageError> {
        match self.partitions.first() {
            None => Ok(false),
            Some(first) => table::has_column(store.blob(first.blob.blob)?, SNAPSHOT.name),
        }
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

    /// Reads the rows of one symbol as one table; `None` when there are none.
    pub fn read_symbol(&self, store: &Store, symbol: &str) -> Result<Option<RecordBatch>, StageError> {
        let batches: Vec<Option<RecordBatch>> = self
            .partitions
            .par_iter()
            .map(|partition| partition.read_symbol(store, symbol))
            .collect::<Result<_, _>>()?;
        let batches: Vec<RecordBatch> = batches.into_iter().flatten().collect();
        match batches.first() {
            None => Ok(None),
            Some(first) => Ok(Some(arrow_select::concat::concat_batches(&first.schema(), &batches)?)),
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
        let path = partition.key.path();
        check_path(&path).map_err(|reason| {
            let shown: String = path.chars().take(40).collect();
            StageError::new(format!("the partition `{}…` {reason}", visible_line(&shown)))
                .hint("its name is made of its symbols: give them shorter ones")
        })?;
        builder.blob(&path, partition.blob);
    }
    Ok(builder.finish()?)
}

/// Cuts a table sorted by (symbol, date) into partitions of one symbol and stores them, in parallel.
///
/// # Errors
/// When it has no `date` column or the store cannot be written. A table without a `symbol` column has the
/// symbol `symbol`.
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

/// As [`partition`], for rows that are not a table yet: `of` is the symbol and date of a row, `part` makes a
/// table of some.
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
    cuts(rows, period, of)
        .into_par_iter()
        .map(|(symbol, range, rows)| put(store, PartitionKey::new(symbol, range), &part(rows)?))
        .collect()
}

/// Cuts a table sorted by (symbol, date) into partitions of several symbols, of at most [`PARTITION_ROWS`]
/// rows unless one symbol has more, and stores them by date, in parallel. How the rows of a period are cut
/// depends on no other period.
///
/// # Errors
/// When it has no `symbol` or `date` column or the store cannot be written.
pub fn partition_symbols(
    store: &Store,
    batch: &RecordBatch,
    period: Period,
) -> Result<Vec<Partition>, StageError> {
    let dates = table::dates(batch, "date")?;
    let symbols = table::texts(batch, "symbol")?;
    let mut periods: BTreeMap<Date, Vec<Vec<Cut<'_>>>> = BTreeMap::new();
    for cut in cuts(batch.num_rows(), period, |i| (symbols.value(i), dates[i])) {
        let partitions = periods.entry(cut.1.from).or_default();
        let rows = |partition: &Vec<Cut<'_>>| partition.iter().map(|cut| cut.2.len()).sum::<usize>();
        match partitions.last_mut() {
            Some(last) if rows(last) + cut.2.len() <= PARTITION_ROWS => last.push(cut),
            _ => partitions.push(vec![cut]),
        }
    }
    let partitions: Vec<Vec<Cut<'_>>> = periods.into_values().flatten().collect();
    partitions
        .into_par_iter()
        .map(|cuts| {
            let parts: Vec<RecordBatch> = cuts
                .iter()
                .map(|(_, _, rows)| batch.slice(rows.start, rows.len()))
                .collect();
            let [first, .., last] = cuts.as_slice() else {
                let (symbol, range, rows) = &cuts[0];
                return put(
                    store,
                    PartitionKey::new(*symbol, *range),
                    &batch.slice(rows.start, rows.len()),
                );
            };
            let symbols = Symbols::Several {
                first: first.0.to_owned(),
                last: last.0.to_owned(),
            };
            let key = PartitionKey {
                symbols,
                range: first.1,
            };
            put(
                store,
                key,
                &arrow_select::concat::concat_batches(&batch.schema(), &parts)?,
            )
        })
        .collect()
}

/// Neighbouring rows of one symbol in one period.
type Cut<'s> = (&'s str, DateRange, Range<usize>);

/// The cuts of rows sorted by (symbol, date).
fn cuts<'s>(rows: usize, period: Period, of: impl Fn(usize) -> (&'s str, Date)) -> Vec<Cut<'s>> {
    let mut cuts: Vec<Cut<'s>> = Vec::new();
    for i in 0..rows {
        let (symbol, date) = of(i);
        match cuts.last_mut() {
            Some((last, range, rows)) if range.contains(date) && *last == symbol => rows.end = i + 1,
            _ => cuts.push((symbol, period.range(date), i..i + 1)),
        }
    }
    cuts
}

pub(crate) fn put(store: &Store, key: PartitionKey, batch: &RecordBatch) -> Result<Partition, StageError> {
    let blob = store.put(&table::to_parquet(batch)?)?;
    Ok(Partition { key, blob })
}
