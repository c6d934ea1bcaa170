//! Rows of files in the store, cut by day: the tables that partitions are made of.
//!
//! The cuts of a file are tables of their own in one blob. A cut holds the rows of neighbouring days of one
//! month (a year, of bars), of one day where that has many, so that a partition is made from the cuts that it
//! overlaps; the digest of a cut says whether they have changed.

use crate::file_memo::File;
use arrow_array::{ArrayRef, RecordBatch, UInt32Array, new_null_array};
use arrow_schema::{DataType, Schema, SchemaRef};
use arrow_select::take::take_record_batch;
use cache::{BlobDigest, BlobRef, BlobWriter, Store};
use datasets::DateRange;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use stages_core::dataset::Period;
use stages_core::{Context, Memo, StageError, table};
use std::ops::Range;
use std::sync::Arc;

/// The rows from which a cut ends with its day.
const CUT_ROWS: usize = 4096;

/// The cuts of a file, in the order of its parts.
#[derive(Debug, Serialize, Deserialize)]
pub struct Cuts {
    /// The blob that they are in.
    pub blob: BlobRef,
    /// Each of them.
    pub list: Vec<Cut>,
}

/// Some rows of a file: those of neighbouring days.
#[derive(Debug, Serialize, Deserialize)]
pub struct Cut {
    /// The first day and the last.
    pub range: DateRange,
    /// Its place in the blob, and its length in bytes.
    place: (u64, u64),
    /// The digest of its bytes.
    pub digest: BlobDigest,
}

impl Cuts {
    /// Passes the rows of some of the cuts on, in their order.
    ///
    /// # Errors
    /// When they cannot be read, or `take` fails.
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

    /// Returns whether their blob is there; it has a memo of its own, which keeps it.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn are_kept(&self, context: &Context, memo: &Memo) -> Result<bool, StageError> {
        Ok(context.store.memo(kept(memo).key)? == Some(self.blob))
    }

    /// Keeps their blob.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn keep(&self, context: &Context, memo: &Memo) -> Result<(), StageError> {
        Ok(context.store.put_memo(kept(memo).key, self.blob)?)
    }
}

/// The facts of a file whose rows are in the store, from its memo where it is cached and its cuts are there,
/// and otherwise by `make`.
///
/// # Errors
/// When `make` fails, or the store does.
pub fn of_file<T: Serialize + for<'de> Deserialize<'de>>(
    context: &Context,
    file: &mut File<'_>,
    cuts: fn(&T) -> &Cuts,
    make: impl FnOnce(&mut File<'_>) -> Result<T, StageError>,
) -> Result<T, StageError> {
    let memo = file.memo.clone();
    let known = context.cached(&memo, |value| {
        let rows: T = decode(&context.store.blob(value.blob)?)?;
        Ok(cuts(&rows).are_kept(context, &memo)?.then_some(rows))
    })?;
    if let Some(known) = known {
        return Ok(known);
    }
    let mut written = None;
    context.compute_memo(&memo, || {
        let rows = make(file)?;
        cuts(&rows).keep(context, &memo)?;
        encode(written.insert(rows))
    })?;
    written.ok_or_else(|| StageError::new("the rows of a file were not written"))
}

/// The memo of the blob that the value of another memo names.
pub fn kept(memo: &Memo) -> Memo {
    Memo::new("ingest blob of a memo v1", &[memo.key.as_bytes()], memo.label.clone())
}

/// A value as the bytes of a memo.
///
/// # Errors
/// None that is known.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, StageError> {
    serde_json::to_vec(value).map_err(|err| StageError::new(err.to_string()))
}

/// The value in the bytes of a memo.
///
/// # Errors
/// When they are damaged.
pub fn decode<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Result<T, StageError> {
    serde_json::from_slice(bytes).map_err(|err| StageError::new(format!("a memo is damaged: {err}")))
}

/// Writes the cuts of a file.
pub struct CutWriter {
    writer: BlobWriter,
    at: u64,
    longest: Period,
    schema: Option<SchemaRef>,
    /// Columns that are not kept, and those that a later part may have alone.
    left_out: &'static [&'static str],
    optional: &'static [&'static str],
    list: Vec<Cut>,
}

impl CutWriter {
    /// A file without rows, whose cuts are of one period each at the longest.
    ///
    /// # Errors
    /// When the store cannot be written.
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
        })
    }

    /// Returns whether no part was added.
    pub fn is_empty(&self) -> bool {
        self.schema.is_none()
    }

    /// Adds these rows of a part of the file's table, all of which have a date.
    ///
    /// # Errors
    /// When the store cannot be written, or the part has other columns than the first.
    pub fn add(&mut self, batch: &RecordBatch, mut rows: Vec<u32>) -> Result<(), StageError> {
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

    /// The part with the columns of the first: the same rows are the same bytes.
    fn aligned(&mut self, batch: &RecordBatch) -> Result<RecordBatch, StageError> {
        let of_batch = batch.schema();
        let schema = self.schema.get_or_insert_with(|| {
            let fields = of_batch.fields().iter();
            let kept = fields.filter(|field| !self.left_out.contains(&field.name().as_str()));
            Arc::new(Schema::new(kept.cloned().collect::<Vec<_>>()))
        });
        let mut names = of_batch.fields().iter().map(|field| field.name().as_str());
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
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn finish(self) -> Result<Cuts, StageError> {
        Ok(Cuts {
            blob: self.writer.finish()?,
            list: self.list,
        })
    }
}
