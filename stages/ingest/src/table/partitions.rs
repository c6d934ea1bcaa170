//! The partitions of a table, period by period: one whose rows are those of an earlier run is not made again.

use super::file::FileTable;
use crate::cuts::{decode, encode};
use crate::options::rows_until;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, TimestampMicrosecondType};
use arrow_array::{Array as _, ArrayRef, RecordBatch, TimestampMicrosecondArray, UInt32Array};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use cache::{BlobRef, canonical_json};
use datasets::schema::{SNAPSHOT, TABLE};
use datasets::{Date, DateRange, SnapshotTime};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stages_core::dataset::{self, Partition, PartitionKey, Period};
use stages_core::{Context, Memo, StageError, table};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The facts that all partitions share.
pub(super) struct Facts {
    /// The columns of numbers.
    pub numbers: Vec<String>,
    /// True where rows have instants rather than days.
    pub is_intraday: bool,
    /// The period of a partition.
    pub period: Period,
    /// The last day whose rows are there.
    pub until: Option<Date>,
}

/// The partitions of a period that are made: the value of their memo.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Done {
    /// The path of each, and its bytes.
    tables: Vec<(String, BlobRef)>,
    /// The rows.
    pub rows: u64,
    /// The symbols that have some.
    pub symbols: BTreeSet<String>,
}

impl Done {
    /// Its partitions.
    ///
    /// # Errors
    /// When a path is not that of a partition.
    pub(super) fn partitions(&self) -> Result<Vec<Partition>, StageError> {
        let of = |(path, blob): &(String, BlobRef)| {
            let key = PartitionKey::parse(path).ok_or_else(|| {
                StageError::new(format!("a memo is damaged: `{path}` is not the path of a partition"))
            })?;
            Ok(Partition { key, blob: *blob })
        };
        self.tables.iter().map(of).collect()
    }
}

/// The cuts, by file, that have rows of a period.
struct Unit<'a> {
    range: DateRange,
    cuts: Vec<(&'a FileTable, usize)>,
}

impl Facts {
    /// Makes all partitions, in the order of their periods.
    ///
    /// # Errors
    /// When one cannot be made.
    pub(super) fn partitions(&self, context: &Context, files: &[FileTable]) -> Result<Vec<Done>, StageError> {
        let mut units: BTreeMap<Date, Unit<'_>> = BTreeMap::new();
        for file in files {
            // A cut is within one period: it was made so.
            let cuts = file.cuts.list.iter().enumerate();
            for (number, cut) in
                cuts.filter(|(_, cut)| self.until.is_none_or(|until| cut.range.from <= until))
            {
                let range = self.period.range(cut.range.from);
                let unit = units.entry(range.from).or_insert(Unit {
                    range,
                    cuts: Vec::new(),
                });
                unit.cuts.push((file, number));
            }
        }
        let units: Vec<Unit<'_>> = units.into_values().collect();
        units.par_iter().map(|unit| self.partition(context, unit)).collect()
    }

    fn partition(&self, context: &Context, unit: &Unit<'_>) -> Result<Done, StageError> {
        context.check_cancelled()?;
        // The order of files and of rows in them does not matter.
        let digests = unit.cuts.iter().map(|(file, cut)| file.cuts.list[*cut].digest);
        let mut rows: Vec<[u8; 32]> = digests.map(|digest| *digest.as_bytes()).collect();
        rows.sort_unstable();
        let mut facts = json!([unit.range, self.numbers, self.is_intraday, self.period]);
        // A partition is the same for all that have the whole of it.
        let ends = unit.cuts.iter().map(|(file, cut)| file.cuts.list[*cut].range.to);
        if let (Some(until), Value::Array(facts)) = (self.until, &mut facts)
            && ends.max().is_some_and(|last| last > until)
        {
            facts.push(json!(until));
        }
        let facts = canonical_json(&facts);
        let memo = Memo::new(
            "ingest/table partition v1",
            &[facts.as_bytes(), rows.concat().as_slice()],
            format!("{}_{}", unit.range.from, unit.range.to),
        );
        let known = context.cached(&memo, |value| {
            let done: Done = decode(&context.store.blob(value.blob)?)?;
            let is_complete = done.tables.iter().all(|(_, blob)| context.store.has(*blob));
            Ok(is_complete.then_some(done))
        })?;
        if let Some(known) = known {
            return Ok(known);
        }
        let batch = self.sorted(context, unit)?;
        let mut made = None;
        context.compute_memo(&memo, || {
            let partitions = dataset::partition_symbols(&context.store, &batch, self.period)?;
            let symbols = dataset::symbol_rows(&batch)?.into_iter();
            encode(
                made.insert(Done {
                    tables: partitions
                        .iter()
                        .map(|partition| (partition.key.path(), partition.blob))
                        .collect(),
                    rows: batch.num_rows() as u64,
                    symbols: symbols.map(|(symbol, _)| symbol.to_owned()).collect(),
                }),
            )
        })?;
        made.ok_or_else(|| StageError::new("a partition was not written"))
    }

    /// The rows of a period, sorted by symbol and instant, each once.
    fn sorted(&self, context: &Context, unit: &Unit<'_>) -> Result<RecordBatch, StageError> {
        let mut parts: Vec<RecordBatch> = Vec::new();
        for (file, cut) in &unit.cuts {
            file.cuts.read(&context.store, &[*cut], |batch| {
                parts.push(self.columns(&rows_until(batch, self.until)?)?);
                Ok(())
            })?;
        }
        let Some(first) = parts.first() else {
            return Err(StageError::new("a period has no rows"));
        };
        let all = concat_batches(&first.schema(), &parts)?;
        drop(parts);
        let symbols = table::texts(&all, "symbol")?;
        let times = table::snapshot_times(&all)?;
        let key = |row: u32| (symbols.value(row as usize), times[row as usize]);
        let count = u32::try_from(all.num_rows()).map_err(|_| {
            StageError::new("a partition has more than 4,294,967,295 rows").hint("set a shorter `partition`")
        })?;
        let mut order: Vec<u32> = (0..count).collect();
        order.sort_by(|a, b| key(*a).cmp(&key(*b)));
        let columns: Vec<&ArrayRef> = self
            .numbers
            .iter()
            .filter_map(|name| all.column_by_name(name))
            .collect();
        let bits = |column: &ArrayRef, row: u32| {
            let row = row as usize;
            column
                .is_valid(row)
                .then(|| column.as_primitive::<Float64Type>().value(row).to_bits())
        };
        for pair in order.windows(2) {
            let [a, b] = [pair[0], pair[1]];
            if key(a) != key(b) {
                continue;
            }
            if let Some(place) = columns.iter().position(|column| bits(column, a) != bits(column, b)) {
                let (symbol, time): (&str, SnapshotTime) = key(a);
                return Err(StageError::new(format!(
                    "two rows of `{symbol}` at {time} have different values of `{}`",
                    self.numbers[place]
                ))
                .hint(
                    "an instant has one row of a symbol: keep the one that was known first, or date the \
                    other when it was known",
                ));
            }
        }
        order.dedup_by(|a, b| key(*a) == key(*b));
        Ok(take_record_batch(&all, &UInt32Array::from(order))?)
    }

    /// The columns of the table: keys, the instant where there are several rows a day, and the numbers in the
    /// order of the first file.
    fn columns(&self, batch: &RecordBatch) -> Result<RecordBatch, StageError> {
        let column = |name: &str| {
            let found = batch.column_by_name(name);
            found
                .cloned()
                .ok_or_else(|| StageError::new(format!("the rows of a file have no `{name}`")))
        };
        let mut fields: Vec<Field> = TABLE.iter().map(table::field).collect();
        let mut arrays: Vec<ArrayRef> = TABLE
            .iter()
            .map(|key| column(key.name))
            .collect::<Result<_, StageError>>()?;
        if self.is_intraday {
            let instants = column(SNAPSHOT.name)?;
            let instants: &TimestampMicrosecondArray = instants
                .as_primitive_opt::<TimestampMicrosecondType>()
                .ok_or_else(|| StageError::new("the instants of a file are damaged"))?;
            fields.push(table::field(&SNAPSHOT));
            arrays.push(Arc::new(instants.clone()));
        }
        for name in &self.numbers {
            fields.push(Field::new(name, DataType::Float64, true));
            arrays.push(column(name)?);
        }
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
    }
}
