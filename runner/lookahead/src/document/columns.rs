//! Perturbed rows of typed columns.

use super::{Document, New, Variant, text};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, Date32Array, Decimal128Array, LargeStringArray,
    PrimitiveArray, RecordBatch, RecordBatchOptions, StringArray, StringViewArray, UInt64Array,
};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema};
use arrow_select::interleave::interleave;
use arrow_select::take::take;
use std::sync::Arc;

/// A table whose texts are no dictionaries.
///
/// # Errors
/// When a dictionary holds what it may not.
pub fn plain(batch: &RecordBatch) -> Result<RecordBatch, String> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for (field, array) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        match array.data_type() {
            DataType::Dictionary(_, values) => {
                fields.push(Arc::new(Field::new(field.name(), (**values).clone(), true)));
                arrays.push(cast(array, values).map_err(|err| err.to_string())?);
            }
            _ => {
                fields.push(field.clone());
                arrays.push(array.clone());
            }
        }
    }
    let schema = Schema::new_with_metadata(fields, batch.schema_ref().metadata().clone());
    table(&Arc::new(schema), arrays, batch.num_rows())
}

fn table(schema: &Arc<Schema>, arrays: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, String> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), arrays, &options).map_err(|err| err.to_string())
}

/// The perturbed rows of a table.
///
/// # Errors
/// When a column's type has no such kernel.
pub fn batch(document: &Document, old: &RecordBatch, variant: &Variant) -> Result<RecordBatch, String> {
    let indices: UInt64Array = variant.from.iter().map(|&row| Some(row as u64)).collect();
    let mut arrays = Vec::with_capacity(old.num_columns());
    for (i, column) in old.columns().iter().enumerate() {
        let taken = take(column.as_ref(), &indices, None).map_err(|err| err.to_string())?;
        arrays.push(match variant.columns.get(&i) {
            Some(new) => replaced(&taken, new, |place| text::chosen(document, i, new, place)),
            None => taken,
        });
    }
    table(&old.schema(), arrays, variant.from.len())
}

/// The rows of two tables, each with its table and its place there.
///
/// # Errors
/// Likewise.
pub fn interleaved(
    old: &RecordBatch,
    new: &RecordBatch,
    picks: &[(usize, usize)],
) -> Result<RecordBatch, String> {
    let columns = old.columns().iter().zip(new.columns());
    let arrays: Vec<ArrayRef> = columns
        .map(|(old, new)| interleave(&[old.as_ref(), new.as_ref()], picks).map_err(|err| err.to_string()))
        .collect::<Result<_, _>>()?;
    table(&old.schema(), arrays, picks.len())
}

fn numbers<T: ArrowPrimitiveType>(
    old: &ArrayRef,
    values: &[f64],
    native: impl Fn(f64) -> T::Native,
) -> ArrayRef {
    let old = old.as_primitive::<T>();
    let cells = old.iter().zip(values);
    let new: PrimitiveArray<T> = cells
        .map(|(old, value)| old.map(|old| if value.is_finite() { native(*value) } else { old }))
        .collect();
    Arc::new(new.with_data_type(old.data_type().clone()))
}

/// A column with replaced cells; others of its cells stay.
fn replaced<'a>(column: &ArrayRef, new: &New, chosen: impl Fn(usize) -> Option<&'a str>) -> ArrayRef {
    macro_rules! texts {
        ($old:expr, $array:ty) => {{
            let cells = $old.iter().enumerate();
            let new: $array = cells
                .map(|(place, old)| old.map(|old| chosen(place).unwrap_or(old)))
                .collect();
            Arc::new(new) as ArrayRef
        }};
    }
    match (new, column.data_type()) {
        (New::Numbers(values), DataType::Float64) => numbers::<Float64Type>(column, values, |value| value),
        (New::Numbers(values), DataType::Float32) => {
            numbers::<Float32Type>(column, values, |value| value as f32)
        }
        (New::Numbers(values), DataType::Int64) => numbers::<Int64Type>(column, values, |value| value as i64),
        (New::Numbers(values), DataType::Int32) => numbers::<Int32Type>(column, values, |value| value as i32),
        (New::Numbers(values), DataType::Int16) => numbers::<Int16Type>(column, values, |value| value as i16),
        (New::Numbers(values), DataType::Int8) => numbers::<Int8Type>(column, values, |value| value as i8),
        (New::Numbers(values), DataType::UInt64) => {
            numbers::<UInt64Type>(column, values, |value| value as u64)
        }
        (New::Numbers(values), DataType::UInt32) => {
            numbers::<UInt32Type>(column, values, |value| value as u32)
        }
        (New::Numbers(values), DataType::UInt16) => {
            numbers::<UInt16Type>(column, values, |value| value as u16)
        }
        (New::Numbers(values), DataType::UInt8) => numbers::<UInt8Type>(column, values, |value| value as u8),
        (New::Numbers(values), DataType::Decimal128(_, scale)) => {
            let scale = 10f64.powi(i32::from(*scale));
            let old = column.as_primitive::<Decimal128Type>();
            let cells = old.iter().zip(values);
            let new: Decimal128Array = cells
                .map(|(old, value)| {
                    old.map(|old| {
                        if value.is_finite() {
                            (value * scale).round() as i128
                        } else {
                            old
                        }
                    })
                })
                .collect();
            Arc::new(new.with_data_type(column.data_type().clone()))
        }
        (New::Flags(flags), DataType::Boolean) => {
            let cells = column.as_boolean().iter().zip(flags);
            Arc::new(cells.map(|(old, new)| new.or(old)).collect::<BooleanArray>())
        }
        (New::Days(days), DataType::Date32) => {
            let cells = column.as_primitive::<Date32Type>().iter().zip(days);
            Arc::new(cells.map(|(old, new)| new.or(old)).collect::<Date32Array>())
        }
        (_, DataType::Utf8) => texts!(column.as_string::<i32>(), StringArray),
        (_, DataType::LargeUtf8) => texts!(column.as_string::<i64>(), LargeStringArray),
        (_, DataType::Utf8View) => texts!(column.as_string_view(), StringViewArray),
        _ => column.clone(),
    }
}
