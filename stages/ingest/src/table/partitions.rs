//! The partitions of a table, made period by period; a period whose rows equal those of an earlier run is
//! taken from its memo.

use super::file::FileTable;
use crate::clock::instant_text;
use crate::cuts::{Tables, Unit, cached_or, units};
use crate::options::rows_until;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, TimestampMicrosecondType};
use arrow_array::{Array as _, ArrayRef, RecordBatch, TimestampMicrosecondArray, UInt32Array};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use cache::canonical_json;
use datasets::schema::{SNAPSHOT, TABLE};
use datasets::{Date, SnapshotTime, TimeZone};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stages_core::dataset::{self, Period};
use stages_core::{Context, Memo, StageError, table};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The facts shared by all partitions.
pub(super) struct Facts {
    /// The numeric columns.
    pub numbers: Vec<String>,
    /// True if rows have instants rather than dates.
    pub is_intraday: bool,
    /// The period of a partition.
    pub period: Period,
    /// The last date whose rows count.
    pub until: Option<Date>,
    /// The time zone of times without an offset.
    pub zone: TimeZone,
}

/// The result for one period: the value of the period's memo.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Done {
    /// The stored tables of the period.
    pub tables: Tables,
    /// The number of rows.
    pub rows: u64,
    /// The symbols with rows.
    pub symbols: BTreeSet<String>,
}

impl Facts {
    /// Makes the partitions of all periods, in order.
    pub(super) fn partitions(&self, context: &Context, files: &[FileTable]) -> Result<Vec<Done>, StageError> {
        // Every cut lies within one period.
        let mut units = units(files, self.period);
        if let Some(until) = self.until {
            for unit in &mut units {
                for (file, cuts) in &mut unit.cuts {
                    cuts.retain(|cut| file.cuts.list[*cut].range.from <= until);
                }
                unit.cuts.retain(|(_, cuts)| !cuts.is_empty());
            }
            units.retain(|unit| !unit.cuts.is_empty());
        }
        units.par_iter().map(|unit| self.partition(context, unit)).collect()
    }

    fn partition(&self, context: &Context, unit: &Unit<'_, FileTable>) -> Result<Done, StageError> {
        context.check_cancelled()?;
        let mut facts = json!([unit.range, self.numbers, self.is_intraday, self.period]);
        // Values of `until` after the end of the partition give the same key.
        let ends = unit.list().map(|cut| cut.range.to);
        if let (Some(until), Value::Array(facts)) = (self.until, &mut facts)
            && ends.max().is_some_and(|last| last > until)
        {
            facts.push(json!(until));
        }
        let facts = canonical_json(&facts);
        let memo = Memo::new(
            "ingest/table partition v1",
            &[facts.as_bytes(), &unit.digests()],
            format!("{}_{}", unit.range.from, unit.range.to),
        );
        let is_whole = |done: &Done| Ok(done.tables.are_there(context));
        cached_or(context, &memo, is_whole, || {
            let batch = self.sorted(context, unit)?;
            let symbols = dataset::symbol_rows(&batch)?.into_iter();
            Ok(Done {
                rows: batch.num_rows() as u64,
                symbols: symbols.map(|(symbol, _)| symbol.to_owned()).collect(),
                tables: Tables::store(context, &batch, self.period)?,
            })
        })
    }

    /// The rows of a period, sorted by symbol and instant, without duplicates.
    fn sorted(&self, context: &Context, unit: &Unit<'_, FileTable>) -> Result<RecordBatch, StageError> {
        let mut parts: Vec<RecordBatch> = Vec::new();
        for (file, cuts) in &unit.cuts {
            file.cuts.read(&context.store, cuts, |batch| {
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
                let err = StageError::new(format!(
                    "two rows of `{symbol}` at {time} have different values of `{}`",
                    self.numbers[place]
                ));
                if let Some(hint) = self.clock_set_back(time) {
                    return Err(err.hint(hint));
                }
                return Err(err.hint(
                    "an instant has one row of a symbol: keep the one that was known first, or date the \
                    other when it was known",
                ));
            }
        }
        order.dedup_by(|a, b| key(*a) == key(*b));
        Ok(take_record_batch(&all, &UInt32Array::from(order))?)
    }

    /// The hint about two rows of one instant whose hour comes twice, as the clock is set back in it.
    fn clock_set_back(&self, time: SnapshotTime) -> Option<String> {
        let (instant, hour) = (time.instant?, 3_600_000_000);
        let (day, micros) = self.zone.local(instant);
        if self.zone.local(instant + hour) != (day, micros) {
            return None;
        }
        Some(format!(
            "the clock of {} is set back, so that {day} has this hour twice: write times with their offset from \
            UTC, such as `{}`, or in UTC",
            self.zone,
            instant_text(instant).replace('Z', "+00:00")
        ))
    }

    /// The columns of the table: the keys, the instant if there are several rows a day, and the numbers in
    /// the order of the first file.
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
