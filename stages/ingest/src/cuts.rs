//! The rows of files in the store, cut by date: the tables from which partitions are made.
//!
//! Each cut is a table of its own, and all cuts of a file are in one blob. A cut holds the rows of
//! neighbouring days of one month (of one year, for bars), or of a single day with many rows. A partition is
//! made from the cuts that it overlaps, and the digest of a cut shows whether its rows have changed.

use arrow_array::{ArrayRef, RecordBatch, UInt32Array, new_null_array};
use arrow_schema::{DataType, Schema, SchemaRef};
use arrow_select::take::take_record_batch;
use cache::{BlobDigest, BlobRef, BlobWriter, Store};
use datasets::layout::Layout;
use datasets::{Date, DateRange};
use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use stages_core::dataset::{self, Partition, PartitionKey, Period};
use stages_core::{Context, Memo, StageError, table};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

/// The number of rows from which a cut ends with the current day.
const CUT_ROWS: usize = 4096;

/// The cuts of a file, in the order of the file's parts.
#[derive(Debug, Serialize, Deserialize)]
pub struct Cuts {
    /// The blob that holds the cuts.
    pub blob: BlobRef,
    /// The cuts, in order.
    pub list: Vec<Cut>,
    /// The number of rows of the file that its layout leaves out (`where`).
    pub left_out: u64,
    /// Findings about the reading of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Default for Cuts {
    fn default() -> Self {
        Self {
            blob: BlobRef::of(&[]),
            list: Vec::new(),
            left_out: 0,
            notes: Vec::new(),
        }
    }
}

/// The entry of a table's metadata with the number of rows that its layout leaves out.
const LEFT_OUT: &str = "left_out";

/// A file's table with the number of rows that its layout leaves out.
pub fn with_left_out(batch: RecordBatch, rows: usize) -> Result<RecordBatch, StageError> {
    if rows == 0 {
        return Ok(batch);
    }
    let metadata: HashMap<String, String> = [(LEFT_OUT.to_owned(), rows.to_string())].into();
    let schema = Schema::clone(&batch.schema()).with_metadata(metadata);
    Ok(RecordBatch::try_new(Arc::new(schema), batch.columns().to_vec())?)
}

/// Says how many rows the layouts of a stage's files leave out, and returns it for the metadata.
pub fn say_left_out<'c>(context: &Context, layouts: &[Layout], cuts: impl Iterator<Item = &'c Cuts>) -> u64 {
    let rows = cuts.map(|cuts| cuts.left_out).sum();
    if rows > 0 {
        let conditions: BTreeSet<String> = layouts
            .iter()
            .filter_map(|layout| {
                Some(format!(
                    "`where: {}` of layout `{}`",
                    layout.condition.as_ref()?,
                    layout.name
                ))
            })
            .collect();
        let conditions = conditions.into_iter().collect::<Vec<_>>().join(", ");
        let message = format!("{rows} rows of the files are left out by {conditions}");
        context.warn(message, None);
    }
    rows
}

/// A cut: rows of a file on neighbouring days.
#[derive(Debug, Serialize, Deserialize)]
pub struct Cut {
    /// The first and last day.
    pub range: DateRange,
    /// The offset of the cut in the blob and its length, in bytes.
    place: (u64, u64),
    /// The digest of the cut's bytes.
    pub digest: BlobDigest,
}

impl Cuts {
    /// Passes the rows of the cuts with the given indices to `take`, in order.
    pub fn read(
        &self,
        store: &Store,
        cuts: &[usize],
        mut take: impl FnMut(RecordBatch) -> Result<(), StageError>,
    ) -> Result<(), StageError> {
        let blob = store.blob(self.blob.blob)?;
        for cut in cuts {
            let (at, len) = self.list[*cut].place;
            take(table::from_parquet_within(blob.clone(), at..at + len)?)?;
        }
        Ok(())
    }
}

/// The value of a memo if it is cached and `is_whole` accepts it; otherwise the result of `make`.
pub fn cached_or<T: Serialize + DeserializeOwned>(
    context: &Context,
    memo: &Memo,
    is_whole: impl Fn(&T) -> Result<bool, StageError>,
    make: impl FnOnce() -> Result<T, StageError>,
) -> Result<T, StageError> {
    let known = context.cached(memo, |value| {
        let known: T = decode(&context.store.blob(value.blob)?)?;
        Ok(is_whole(&known)?.then_some(known))
    })?;
    if let Some(known) = known {
        return Ok(known);
    }
    let mut made = None;
    context.compute_memo(memo, || encode(made.insert(make()?)))?;
    made.ok_or_else(|| StageError::new("the value of a memo was not written"))
}

/// The facts of a file with stored rows, from the file's memo if it is cached and the cuts are in the store;
/// otherwise made by `make`.
pub fn of_file<T: AsRef<Cuts> + Serialize + DeserializeOwned>(
    context: &Context,
    memo: &Memo,
    make: impl FnOnce() -> Result<T, StageError>,
) -> Result<T, StageError> {
    let make = || {
        let rows = make()?;
        context.store.put_memo(kept(memo).key, rows.as_ref().blob)?;
        Ok(rows)
    };
    // A memo of its own keeps the blob from being collected.
    let is_kept = |rows: &T| Ok(context.store.memo(kept(memo).key)? == Some(rows.as_ref().blob));
    cached_or(context, memo, is_kept, make)
}

/// The stored tables of a period: the path and the blob of each partition.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tables(Vec<(String, BlobRef)>);

impl Tables {
    /// Stores rows as partitions of `period`.
    pub fn store(context: &Context, batch: &RecordBatch, period: Period) -> Result<Self, StageError> {
        let partitions = dataset::partition_symbols(&context.store, batch, period)?.into_iter();
        Ok(Self(
            partitions
                .map(|partition| (partition.key.path(), partition.blob))
                .collect(),
        ))
    }

    /// The stored partitions.
    pub fn partitions(&self) -> Result<Vec<Partition>, StageError> {
        let of = |(path, blob): &(String, BlobRef)| {
            let key = PartitionKey::parse(path).ok_or_else(|| {
                StageError::new(format!("a memo is damaged: `{path}` is not the path of a partition"))
            })?;
            Ok(Partition { key, blob: *blob })
        };
        self.0.iter().map(of).collect()
    }

    /// Returns whether all tables are in the store.
    pub fn are_there(&self, context: &Context) -> bool {
        self.0.iter().all(|(_, blob)| context.store.has(*blob))
    }
}

/// The cuts, by file, with rows in one period.
pub struct Unit<'a, F> {
    /// The dates of the period.
    pub range: DateRange,
    /// The files, and the indices of their cuts.
    pub cuts: Vec<(&'a F, Vec<usize>)>,
}

impl<F: AsRef<Cuts>> Unit<'_, F> {
    /// The cuts of the period.
    pub fn list(&self) -> impl Iterator<Item = &Cut> {
        let by_file = self.cuts.iter();
        by_file.flat_map(|(file, cuts)| cuts.iter().map(move |cut| &file.as_ref().list[*cut]))
    }

    /// The sorted digests of the cuts, concatenated; independent of the order of files and of rows within
    /// them.
    pub fn digests(&self) -> Vec<u8> {
        let mut digests: Vec<[u8; 32]> = self.list().map(|cut| *cut.digest.as_bytes()).collect();
        digests.sort_unstable();
        digests.concat()
    }
}

/// The periods in which files have rows, in order, each with its cuts.
pub fn units<F: AsRef<Cuts>>(files: &[F], period: Period) -> Vec<Unit<'_, F>> {
    let mut units: BTreeMap<Date, Unit<'_, F>> = BTreeMap::new();
    for file in files {
        for (number, cut) in file.as_ref().list.iter().enumerate() {
            let mut range = period.range(cut.range.from);
            while range.from <= cut.range.to {
                let cuts = Vec::new();
                let unit = units.entry(range.from).or_insert(Unit { range, cuts });
                match unit.cuts.last_mut() {
                    Some((last, cuts)) if std::ptr::eq(*last, file) => cuts.push(number),
                    _ => unit.cuts.push((file, vec![number])),
                }
                range = period.range(range.to.plus(1));
            }
        }
    }
    units.into_values().collect()
}

/// The memo that keeps the blob named by the value of `memo`.
pub fn kept(memo: &Memo) -> Memo {
    Memo::new("ingest blob of a memo v1", &[memo.key.as_bytes()], memo.label.clone())
}

/// Serialises the value of a memo.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, StageError> {
    serde_json::to_vec(value).map_err(|err| StageError::new(err.to_string()))
}

/// Deserialises the value of a memo.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, StageError> {
    serde_json::from_slice(bytes).map_err(|err| StageError::new(format!("a memo is damaged: {err}")))
}

/// Writes the cuts of a file.
pub struct CutWriter {
    writer: BlobWriter,
    at: u64,
    longest: Period,
    schema: Option<SchemaRef>,
    /// Columns that are not stored, and columns that may be missing in some parts.
    left_out: &'static [&'static str],
    optional: &'static [&'static str],
    list: Vec<Cut>,
    rows_left_out: u64,
    notes: BTreeSet<String>,
}

impl CutWriter {
    /// A writer for a file's rows; no cut is longer than one period `longest`.
    pub fn new(
        store: &Store,
        longest: Period,
        left_out: &'static [&'static str],
        optional: &'static [&'static str],
    ) -> Result<Self, StageError> {
        Ok(Self {
            writer: store.writer()?,
            at: 0,
            longest,
            schema: None,
            left_out,
            optional,
            list: Vec::new(),
            rows_left_out: 0,
            notes: BTreeSet::new(),
        })
    }

    /// Returns whether no part has been added.
    pub fn is_empty(&self) -> bool {
        self.schema.is_none()
    }

    /// Adds the given rows of a part of the file's table, all of which have a date.
    pub fn add(&mut self, batch: &RecordBatch, mut rows: Vec<u32>) -> Result<(), StageError> {
        let left_out = batch
            .schema_ref()
            .metadata()
            .get(LEFT_OUT)
            .and_then(|rows| rows.parse::<u64>().ok());
        self.rows_left_out += left_out.unwrap_or(0);
        self.notes.extend(crate::notes::of_table(batch));
        let batch = self.aligned(batch)?;
        let dates = table::dates(&batch, "date")?;
        rows.sort_by_key(|row| dates[*row as usize]);
        let is_whole = rows.len() == batch.num_rows() && rows.is_sorted();
        let batch = match is_whole {
            true => batch,
            false => take_record_batch(&batch, &UInt32Array::from(rows))?,
        };
        let dates = table::dates(&batch, "date")?;
        let mut cuts: Vec<Range<usize>> = Vec::new();
        let mut start = 0;
        while start < dates.len() {
            let period = self.longest.range(dates[start]);
            let mut end = start + 1;
            while end < dates.len()
                && (dates[end] == dates[end - 1] || end - start < CUT_ROWS && period.contains(dates[end]))
            {
                end += 1;
            }
            cuts.push(start..end);
            start = end;
        }
        let tables: Vec<Result<Vec<u8>, StageError>> = cuts
            .par_iter()
            .map(|rows| table::to_parquet(&batch.slice(rows.start, rows.len())))
            .collect();
        for (rows, bytes) in cuts.into_iter().zip(tables) {
            let bytes = bytes?;
            self.list.push(Cut {
                range: DateRange {
                    from: dates[rows.start],
                    to: dates[rows.end - 1],
                },
                place: (self.at, bytes.len() as u64),
                digest: BlobRef::of(&bytes).blob,
            });
            self.at += bytes.len() as u64;
            self.writer.put(&bytes)?;
        }
        Ok(())
    }

    /// The part with exactly the columns of the first part, so that equal rows give equal bytes.
    fn aligned(&mut self, batch: &RecordBatch) -> Result<RecordBatch, StageError> {
        let batch_schema = batch.schema();
        let schema = self.schema.get_or_insert_with(|| {
            let fields = batch_schema.fields().iter();
            let kept = fields.filter(|field| !self.left_out.contains(&field.name().as_str()));
            Arc::new(Schema::new(kept.cloned().collect::<Vec<_>>()))
        });
        let mut names = batch_schema.fields().iter().map(|field| field.name().as_str());
        let unknown = names.find(|name| {
            let is_known = schema.column_with_name(name).is_some();
            !is_known && !self.left_out.contains(name) && !self.optional.contains(name)
        });
        if let Some(unknown) = unknown {
            return Err(StageError::new(format!(
                "the tables of a file have different columns: not all have `{unknown}`"
            ))
            .hint("unpack it, and read the tables in two stages"));
        }
        let columns = schema.fields().iter().map(|field| -> ArrayRef {
            let ty: &DataType = field.data_type();
            let column = batch.column_by_name(field.name()).cloned();
            column.unwrap_or_else(|| new_null_array(ty, batch.num_rows()))
        });
        Ok(RecordBatch::try_new(Arc::clone(schema), columns.collect())?)
    }

    /// Stores the cuts.
    pub fn finish(self) -> Result<Cuts, StageError> {
        Ok(Cuts {
            blob: self.writer.finish()?,
            list: self.list,
            left_out: self.rows_left_out,
            notes: self.notes.into_iter().collect(),
        })
    }
}
