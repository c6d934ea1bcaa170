//! Perturbed values after a date: plausible, so that data checks still pass, and each with its own factor, so that no ratio is preserved.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, RecordBatch};
use arrow::datatypes::{DataType, Float64Type};
use datasets::Date;
use stages_core::StageError;
use std::sync::Arc;

/// Columns that identify a row.
const KEYS: [&str; 3] = ["strike", "years", "tenor_years"];

/// A deterministic pseudo-random number from 0 to 1 for a date and a position.
fn chance(date: Date, place: u64) -> f64 {
    let mut x = (u64::from(date.0.cast_unsigned()) << 32) ^ place.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // The finaliser of splitmix64.
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) as f64 / u64::MAX as f64
}

/// The perturbed value of a row of `date` in column number `column`: about 5 to 15 % more, and never zero.
pub fn value(date: Date, column: usize, value: f64) -> f64 {
    let factor = 1.05 + 0.09 * chance(date, 0) + 0.01 * chance(date, 1 + column as u64);
    if value == 0.0 { 1e-3 * factor } else { value * factor }
}

/// A table with perturbed floats in the rows after `at`, and the number of these rows; `None` if there are none.
pub fn batch(batch: &RecordBatch, dates: &[Date], at: Date) -> Result<Option<(u64, RecordBatch)>, StageError> {
    let changed = dates.iter().filter(|date| **date > at).count() as u64;
    let schema = batch.schema();
    let is_changed = |i: usize| {
        let field = schema.field(i);
        *field.data_type() == DataType::Float64 && !KEYS.contains(&field.name().as_str())
    };
    if changed == 0 || !(0..batch.num_columns()).any(is_changed) {
        return Ok(None);
    }
    let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
    for (i, column) in columns.iter_mut().enumerate().filter(|(i, _)| is_changed(*i)) {
        let floats = column.as_primitive::<Float64Type>();
        // Missing values stay missing, and zeros of these columns stay zero.
        let keeps_zero = ["bid", "volume", "open_interest"].contains(&schema.field(i).name().as_str());
        let other: Float64Array = floats
            .iter()
            .zip(dates)
            .map(|(old, &date)| {
                let old = old?;
                let kept = date <= at || !old.is_finite() || (keeps_zero && old == 0.0);
                Some(if kept { old } else { value(date, i, old) })
            })
            .collect();
        *column = Arc::new(other);
    }
    let mut columns = Columns {
        schema: &schema,
        columns,
    };
    columns.order("low", &["open", "close", "high"], f64::min);
    columns.order("high", &["open", "close", "low"], f64::max);
    columns.order("ask", &["bid"], f64::max);
    Ok(Some((changed, RecordBatch::try_new(schema.clone(), columns.columns)?)))
}

struct Columns<'a> {
    schema: &'a arrow::datatypes::Schema,
    columns: Vec<ArrayRef>,
}

impl Columns<'_> {
    fn floats(&self, name: &str) -> Option<(usize, &Float64Array)> {
        let i = self.schema.index_of(name).ok()?;
        Some((i, self.columns[i].as_primitive_opt::<Float64Type>()?))
    }

    /// Moves a column beyond others, as data checks require: a low is the minimum of its bar.
    fn order(&mut self, name: &str, others: &[&str], beyond: fn(f64, f64) -> f64) {
        let Some((i, column)) = self.floats(name) else { return };
        let others: Vec<&Float64Array> = others.iter().filter_map(|name| Some(self.floats(name)?.1)).collect();
        let ordered: Float64Array = column
            .iter()
            .enumerate()
            .map(|(row, value)| {
                let known = others
                    .iter()
                    .filter(|other| other.is_valid(row))
                    .map(|other| other.value(row));
                Some(known.fold(value?, beyond))
            })
            .collect();
        self.columns[i] = Arc::new(ordered);
    }
}

/// The rows of a table up to a date.
pub fn up_to(batch: &RecordBatch, dates: &[Date], at: Date) -> Result<RecordBatch, StageError> {
    let kept = BooleanArray::from(dates.iter().map(|date| *date <= at).collect::<Vec<_>>());
    Ok(arrow::compute::filter_record_batch(batch, &kept)?)
}
