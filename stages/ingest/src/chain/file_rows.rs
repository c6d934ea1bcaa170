//! The rows of a file in the store, cut by day, with what is known of them without reading them again: each file is parsed once.
//!
//! The cuts are tables of their own in one blob. A cut holds the rows of neighbouring days of one month, of one day where that has many, so that a
//! partition is made from the cuts that it overlaps; the digest of a cut says whether they have changed.

use super::columns::FLOATS;
use super::file_terms::{self, FileTerms};
use crate::file_memo::File;
use crate::value::OUT_OF_RANGE;
use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array, new_null_array};
use arrow::compute::take_record_batch;
use arrow::datatypes::{Schema, SchemaRef};
use cache::{BlobDigest, BlobRef, BlobWriter, Store};
use datasets::contract::Terms;
use datasets::{Date, DateRange};
use serde::{Deserialize, Serialize};
use stages_core::dataset::Period;
use stages_core::{Context, Memo, StageError, table};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The rows from which a cut ends with its day.
const CUT_ROWS: usize = 4096;

/// The rows of a file.
#[derive(Debug, Serialize, Deserialize)]
pub struct FileRows {
    /// The blob of the cuts.
    rows: BlobRef,
    /// The cuts, in the order of the file's parts.
    pub cuts: Vec<Cut>,
    /// The symbols that [`Day::symbol`] stands for.
    pub symbols: Vec<String>,
    /// The kinds of contracts that [`Day::kinds`] stand for.
    pub kinds: Vec<Kind>,
    /// The days of its symbols.
    pub days: Vec<Day>,
    /// By symbol, the rows without a date or expiry that is supported. They are in no cut.
    pub out_of_range: BTreeMap<u32, u64>,
    /// By symbol and day, the rows whose strike was read from single precision and is not what it was there.
    pub single_precision: Vec<(u32, Date, u64)>,
    /// True where its rows have times of day.
    pub has_times: bool,
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

/// A root, and the terms that rows state of its contracts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kind {
    /// The root in the file.
    pub root: String,
    /// The terms.
    #[serde(default)]
    pub terms: Terms,
}

/// The rows of a symbol on a day, at one time.
#[derive(Debug, Serialize, Deserialize)]
pub struct Day {
    /// The symbol.
    pub symbol: u32,
    /// The day.
    pub date: Date,
    /// Minutes after midnight, -1 where that is not known.
    pub time: i32,
    /// The rows.
    pub rows: u64,
    /// The columns [`FLOATS`] that have a value, a bit each.
    pub columns: u8,
    /// Its kinds of contracts.
    pub kinds: Vec<u32>,
}

impl FileRows {
    /// The rows of a file, from its memo where they are cached.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of(context: &Context, file: &mut File<'_>) -> Result<Self, StageError> {
        let memo = file.memo.clone();
        // The blob has a memo of its own, which keeps it.
        let kept = Memo::new("ingest rows of a file v1", &[memo.key.as_bytes()], memo.label.clone());
        let known = context.cached(&memo, |value| {
            let rows: Self = decode(&context.store.blob(value.blob)?)?;
            Ok((context.store.memo(kept.key)? == Some(rows.rows)).then_some(rows))
        })?;
        if let Some(known) = known {
            return Ok(known);
        }
        let mut written = None;
        context.compute_memo(&memo, || {
            let mut writer = Writer::new(&context.store)?;
            file.parts(context, &mut |batch| writer.add(&batch))?;
            let rows = writer.finish()?;
            context.store.put_memo(kept.key, rows.rows)?;
            encode(written.insert(rows))
        })?;
        written.ok_or_else(|| StageError::new("the rows of a file were not written"))
    }

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
        let blob = store.blob(self.rows.blob)?;
        for cut in cuts {
            let (at, len) = self.cuts[*cut].place;
            take(table::from_parquet_within(blob.clone(), at..at + len)?)?;
        }
        Ok(())
    }
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

/// Texts and kinds by number.
#[derive(Default)]
struct Numbers {
    symbols: HashMap<String, u32>,
    /// Kinds that state nothing, by root.
    plain: HashMap<String, u32>,
    days: HashMap<(u32, Date, i32), usize>,
}

/// Writes the rows of a file.
struct Writer {
    blob: BlobWriter,
    at: u64,
    schema: Option<SchemaRef>,
    numbers: Numbers,
    found: FileRows,
    has_a_time: bool,
}

impl Writer {
    fn new(store: &Store) -> Result<Self, StageError> {
        Ok(Self {
            blob: store.writer()?,
            at: 0,
            schema: None,
            numbers: Numbers::default(),
            found: FileRows {
                rows: BlobRef::of(&[]),
                cuts: Vec::new(),
                symbols: Vec::new(),
                kinds: Vec::new(),
                days: Vec::new(),
                out_of_range: BTreeMap::new(),
                single_precision: Vec::new(),
                has_times: false,
            },
            has_a_time: false,
        })
    }

    /// Adds a part of the file's table.
    fn add(&mut self, batch: &RecordBatch) -> Result<(), StageError> {
        let kept = self.count(batch)?;
        let batch = self.aligned(batch)?;
        let dates = table::dates(&batch, "date")?;
        let mut rows = kept;
        rows.sort_by_key(|row| dates[*row as usize]);
        let is_whole = rows.len() == batch.num_rows() && rows.is_sorted();
        let batch = match is_whole {
            true => batch,
            false => take_record_batch(&batch, &UInt32Array::from(rows))?,
        };
        let dates = table::dates(&batch, "date")?;
        let mut start = 0;
        while start < dates.len() {
            let month = Period::Month.range(dates[start]);
            let mut end = start + 1;
            while end < dates.len()
                && (dates[end] == dates[end - 1] || end - start < CUT_ROWS && month.contains(dates[end]))
            {
                end += 1;
            }
            let bytes = table::to_parquet(&batch.slice(start, end - start))?;
            self.found.cuts.push(Cut {
                range: DateRange {
                    from: dates[start],
                    to: dates[end - 1],
                },
                place: (self.at, bytes.len() as u64),
                digest: BlobRef::of(&bytes).blob,
            });
            self.at += bytes.len() as u64;
            self.blob.put(&bytes)?;
            start = end;
        }
        Ok(())
    }

    /// The part with the columns of the first: the same rows are the same bytes. Marks of single precision are counted, and not kept.
    fn aligned(&mut self, batch: &RecordBatch) -> Result<RecordBatch, StageError> {
        let batch_schema = batch.schema();
        let schema = self.schema.get_or_insert_with(|| {
            let fields = batch_schema.fields().iter();
            let kept = fields.filter(|field| field.name() != file_terms::SINGLE_PRECISION);
            Arc::new(Schema::new(kept.cloned().collect::<Vec<_>>()))
        });
        let is_known = |name: &String| schema.column_with_name(name).is_some();
        let unknown = batch_schema.fields().iter().map(|field| field.name()).find(|name| {
            !is_known(name) && !matches!(name.as_str(), file_terms::SINGLE_PRECISION | file_terms::TIME)
        });
        if let Some(unknown) = unknown {
            return Err(
                StageError::new(format!("the tables of a file have different columns: not all have `{unknown}`"))
                    .hint("unpack it, and read the tables in two stages"),
            );
        }
        let column = |name: &str| -> ArrayRef {
            let field = batch.column_by_name(name).cloned();
            field.unwrap_or_else(|| {
                let ty = schema.field_with_name(name).map(|field| field.data_type().clone());
                new_null_array(&ty.unwrap_or(arrow::datatypes::DataType::Null), batch.num_rows())
            })
        };
        let columns = schema.fields().iter().map(|field| column(field.name())).collect();
        Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
    }

    /// Notes what is known of the rows, and returns those that have a date and an expiry.
    fn count(&mut self, batch: &RecordBatch) -> Result<Vec<u32>, StageError> {
        let symbols = table::texts(batch, "symbol")?;
        let roots = table::texts(batch, "root")?;
        let (dates, expiries) = (table::dates(batch, "date")?, table::dates(batch, "expiry")?);
        let strikes = table::floats(batch, "strike")?.values();
        let terms = FileTerms::of(batch)?;
        let times = file_terms::times(batch);
        let is_single_precision = file_terms::is_single_precision(batch);
        if self.schema.is_none() {
            self.found.has_times = times.is_some();
        }
        let mut values = Vec::new();
        for name in FLOATS {
            values.push(table::floats(batch, name)?);
        }
        let mut kept = Vec::with_capacity(batch.num_rows());
        let mut day: Option<usize> = None;
        let mut kind: Option<u32> = None;
        for i in 0..batch.num_rows() {
            let date = dates[i];
            let time = times.filter(|times| times.is_valid(i)).map_or(-1, |times| times.value(i));
            self.has_a_time |= time > 0;
            let at = match day.map(|at| (at, &self.found.days[at])) {
                Some((at, of)) if of.date == date && of.time == time && self.found.symbols[of.symbol as usize] == symbols.value(i) => at,
                _ => self.day(symbols.value(i), date, time),
            };
            day = Some(at);
            let symbol = self.found.days[at].symbol;
            if is_single_precision && date != OUT_OF_RANGE && f64::from(strikes[i] as f32) != strikes[i] {
                match self.found.single_precision.last_mut() {
                    Some(last) if last.0 == symbol && last.1 == date => last.2 += 1,
                    _ => self.found.single_precision.push((symbol, date, 1)),
                }
            }
            if date == OUT_OF_RANGE || expiries[i] == OUT_OF_RANGE {
                *self.found.out_of_range.entry(symbol).or_default() += 1;
                continue;
            }
            kept.push(i as u32);
            let of_row = match (&terms, kind) {
                (None, Some(kind)) if self.found.kinds[kind as usize].root == roots.value(i) => kind,
                (terms, _) => {
                    let terms = terms.as_ref().map(|terms| terms.row(i)).transpose()?;
                    self.kind(roots.value(i), terms.unwrap_or_default())
                }
            };
            kind = terms.is_none().then_some(of_row);
            let columns = values.iter().enumerate().filter(|(_, column)| column.is_valid(i));
            let columns = columns.fold(0, |bits, (column, _)| bits | 1 << column);
            let of = &mut self.found.days[at];
            of.rows += 1;
            of.columns |= columns;
            if !of.kinds.contains(&of_row) {
                of.kinds.push(of_row);
            }
        }
        Ok(kept)
    }

    fn day(&mut self, symbol: &str, date: Date, time: i32) -> usize {
        let symbol = match self.numbers.symbols.get(symbol) {
            Some(id) => *id,
            None => {
                let id = self.found.symbols.len() as u32;
                self.found.symbols.push(symbol.to_owned());
                self.numbers.symbols.insert(symbol.to_owned(), id);
                id
            }
        };
        *self.numbers.days.entry((symbol, date, time)).or_insert_with(|| {
            self.found.days.push(Day {
                symbol,
                date,
                time,
                rows: 0,
                columns: 0,
                kinds: Vec::new(),
            });
            self.found.days.len() - 1
        })
    }

    fn kind(&mut self, root: &str, terms: Terms) -> u32 {
        let is_plain = terms == Terms::default();
        if is_plain && let Some(known) = self.numbers.plain.get(root) {
            return *known;
        }
        let kind = Kind {
            root: root.to_owned(),
            terms,
        };
        let kinds = &mut self.found.kinds;
        let at = kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
            kinds.push(kind);
            kinds.len() - 1
        });
        if is_plain {
            self.numbers.plain.insert(root.to_owned(), at as u32);
        }
        at as u32
    }

    fn finish(mut self) -> Result<FileRows, StageError> {
        self.found.rows = self.blob.finish()?;
        self.found.days.retain(|day| day.rows > 0);
        // Where the first row has no time, or all are midnight, they are days.
        self.found.has_times &= self.has_a_time;
        if !self.found.has_times {
            for day in &mut self.found.days {
                day.time = -1;
            }
        }
        Ok(self.found)
    }
}
