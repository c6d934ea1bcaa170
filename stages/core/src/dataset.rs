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
use arrow_array::{Array as _, RecordBatch, StringArray};
use cache::{ArtifactBuilder, ArtifactDigest, BlobRef, Store, check_path};
use datasets::schema::SNAPSHOT;
use datasets::{Date, DateRange};
use rayon::prelude::*;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

/// The maximum number of rows of a partition of several symbols: a year of daily bars of 260 symbols, some
/// megabytes.
pub const PARTITION_ROWS: usize = 1 << 16;

/// The symbols of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Symbols {
    /// One symbol; `rates` for rates.
    One(String),
    /// Several symbols, in the order of their bytes.
    Several {
        /// The first symbol.
        first: String,
        /// The last symbol.
        last: String,
    },
}

impl Symbols {
    /// The first symbol.
    pub fn first(&self) -> &str {
        match self {
            Self::One(first) | Self::Several { first, .. } => first,
        }
    }

    /// The last symbol.
    pub fn last(&self) -> &str {
        match self {
            Self::One(last) | Self::Several { last, .. } => last,
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
    /// The symbols of the partition.
    pub symbols: Symbols,
    /// The first and last date the partition may hold.
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
    pub fn symbol(&self) -> Result<&str, StageError> {
        match &self.symbols {
            Symbols::One(symbol) => Ok(symbol),
            Symbols::Several { .. } => Err(StageError::new(format!(
                "the partition `{}` holds several symbols, where one is expected",
                self.name()
            ))),
        }
    }

    /// The path of the partition's entry in the artifact.
    pub fn path(&self) -> String {
        format!("{}.parquet", self.name())
    }

    /// The path of the partition's entry without its extension, as logs show it.
    pub fn name(&self) -> String {
        let symbols = match &self.symbols {
            Symbols::One(symbol) => encode(symbol),
            Symbols::Several { first, last } => format!("{}..{}", encode(first), encode(last)),
        };
        format!("{symbols}/{}_{}", self.range.from, self.range.to)
    }

    /// The partition key that an entry's path encodes; `None` if the path is not a partition's.
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

/// Encodes a symbol for use in a path: ASCII letters, digits and `-_^.` stay as they are, every other byte
/// becomes hexadecimal (`%E4`), so that different symbols have different paths in any script. A dot at either
/// end or after another dot is encoded, since `..` separates symbols; so is a leading `-`.
fn encode(symbol: &str) -> String {
    let bytes = symbol.as_bytes();
    let is_plain = |i: usize| match bytes[i] {
        b'.' => i > 0 && i + 1 < bytes.len() && bytes[i - 1] != b'.',
        // Command-line programs take a name with a leading dash for an option.
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

/// Decodes the output of [`encode`].
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
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Period {
    /// A day: for big chains.
    Day,
    /// A calendar month.
    Month,
    /// A calendar year: for bars and rates.
    #[default]
    Year,
}

/// The number of rows on one day from which each day becomes a partition.
const DAY_ROWS: usize = 5000;

impl Period {
    /// The partition period of a table whose first day has `rows` rows: days if that is many, otherwise
    /// `small`.
    pub fn of_rows(rows: usize, small: Self) -> Self {
        if rows > DAY_ROWS { Self::Day } else { small }
    }

    /// The dates of the period that contains `date`.
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
    /// The symbols and dates of the partition.
    pub key: PartitionKey,
    /// The stored Parquet bytes of the partition.
    pub blob: BlobRef,
}

impl Partition {
    /// Reads the partition's table from the store.
    pub fn read(&self, store: &Store) -> Result<RecordBatch, StageError> {
        table::from_parquet(store.blob(self.blob.blob)?)
    }

    /// Reads the rows of one symbol; `None` if the partition has no rows of it.
    pub fn read_symbol(&self, store: &Store, symbol: &str) -> Result<Option<RecordBatch>, StageError> {
        match &self.key.symbols {
            Symbols::One(one) if one == symbol => self.read(store).map(Some),
            Symbols::One(_) => Ok(None),
            Symbols::Several { first, last } if symbol < first.as_str() || symbol > last.as_str() => Ok(None),
            Symbols::Several { .. } => {
                let batch = self.read(store)?;
                let rows = symbol_rows(&batch)?.into_iter().find(|(other, _)| *other == symbol);
                Ok(rows.map(|(_, rows)| batch.slice(rows.start, rows.len())))
            }
        }
    }
}

/// The symbols of a table sorted by symbol, each with the range of its rows.
pub fn symbol_rows(batch: &RecordBatch) -> Result<Vec<(&str, Range<usize>)>, StageError> {
    let symbols = table::texts(batch, "symbol")?;
    let mut runs = Vec::new();
    let mut start = 0;
    while start < symbols.len() {
        let end = run_end(symbols, start);
        runs.push((symbols.value(start), start..end));
        start = end;
    }
    Ok(runs)
}

/// The end of the rows from `start` on that have the same text. Blocks of rows are compared with the rows
/// before them at once.
fn run_end(texts: &StringArray, start: usize) -> usize {
    const ROWS: usize = 64;
    let (offsets, bytes) = (texts.value_offsets(), texts.value_data());
    let length = offsets[start + 1] - offsets[start];
    let mut end = start + 1;
    while let Some(block) = offsets.get(end..=end + ROWS) {
        let differ = (0..ROWS).fold(0, |differ, i| differ | (block[i + 1] - block[i] - length));
        let (from, to) = (block[0] as usize, block[ROWS] as usize);
        if differ != 0 || bytes[from..to] != bytes[from - length as usize..to - length as usize] {
            break;
        }
        end += ROWS;
    }
    while end < texts.len() && texts.value(end) == texts.value(start) {
        end += 1;
    }
    end
}

/// A data set opened for reading.
#[derive(Clone, Debug)]
pub struct DataSet {
    /// The metadata of the data set, which depends on its kind: units, currency, multiplier, `quality`.
    pub meta: Value,
    /// The partitions in order; those of one symbol are in order of date.
    pub partitions: Vec<Partition>,
}

impl DataSet {
    /// Opens the data set at an input port.
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

    /// The symbols in the data set, sorted.
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

    /// Returns whether the data set has several snapshots a day, that is, the column [`SNAPSHOT`].
    pub fn is_intraday(&self, store: &Store) -> Result<bool, StageError> {
        match self.partitions.first() {
            None => Ok(false),
            Some(first) => table::has_column(store.blob(first.blob.blob)?, SNAPSHOT.name),
        }
    }

    /// Reads all partitions in parallel and returns them in order.
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

/// Stores a data set whose partitions are already stored and in order.
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

/// Cuts a table sorted by (symbol, date) into partitions of one symbol each and stores them, in parallel.
///
/// # Errors
/// When the table has no `date` column or the store cannot be written. The rows of a table without a `symbol`
/// column belong to `symbol`.
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

/// Cuts `rows` rows sorted by (symbol, date) into partitions of one symbol each and stores them, in parallel.
/// The rows need not be a table yet: `of` gives the symbol and date of a row, `part` builds the table of a
/// range of rows.
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

/// Cuts a table sorted by (symbol, date) into partitions of several symbols and stores them by date, in
/// parallel. A partition has at most [`PARTITION_ROWS`] rows unless a single symbol has more. The cuts within
/// one period do not depend on other periods.
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

/// Adjacent rows of one symbol within one period.
type Cut<'s> = (&'s str, DateRange, Range<usize>);

/// Cuts rows sorted by (symbol, date) by symbol and period.
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

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::ArrayRef;
    use std::sync::Arc;

    #[test]
    fn symbols_end_where_the_text_changes() {
        // Runs around the length of a block, neighbours of the same and of another length, and no text.
        let runs = [
            ("", 70),
            ("A", 1),
            ("AA", 130),
            ("AB", 64),
            ("B", 65),
            ("BBB", 200),
            ("BBC", 63),
            ("C", 2),
        ];
        let rows = runs
            .iter()
            .flat_map(|(symbol, rows)| std::iter::repeat_n(*symbol, *rows));
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values(rows));
        let table = RecordBatch::try_from_iter([("symbol", texts)]).unwrap();
        for start in [0, 1, 69, 70, 300] {
            let part = table.slice(start, table.num_rows() - start);
            let texts = table::texts(&part, "symbol").unwrap();
            let same = |a, b| texts.value(a) == texts.value(b);
            let expected: Vec<(&str, Range<usize>)> = table::runs(0..part.num_rows(), same)
                .into_iter()
                .map(|rows| (texts.value(rows.start), rows))
                .collect();
            assert_eq!(symbol_rows(&part).unwrap(), expected, "from row {start}");
        }
    }
}
