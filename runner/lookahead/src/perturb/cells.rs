//! Perturbed rows of a table: cells are replaced, and keep their types.

use crate::column::Column;
use crate::document::Document;
use crate::{moment, table};
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, StringArray, UInt64Array};
use arrow_cast::cast;
use arrow_schema::ArrowError;
use arrow_select::take::take;
use arrow_select::zip::zip;
use std::collections::BTreeMap;

/// The replaced columns of some rows, by column index; missing cells stay missing.
pub(super) type New = BTreeMap<usize, ArrayRef>;

/// The rows of a table, with some of their cells replaced.
pub(super) fn rows(document: &Document, from: &[usize], new: &New) -> Result<RecordBatch, String> {
    let places: UInt64Array = from.iter().map(|&row| Some(row as u64)).collect();
    let column = |(i, column): (usize, &ArrayRef)| {
        let old = take(column, &places, None)?;
        let Some(new) = new.get(&i) else { return Ok(old) };
        let texts = moment::texts(&old);
        let new = match (texts, new.as_primitive_opt::<Float64Type>(), &document.columns[i]) {
            (Some(texts), Some(values), Column::Numbers(_, integers)) => {
                let text = |((value, old), &row): ((Option<f64>, Option<&str>), &usize)| match integers[row] {
                    true => Some(format!("{}", value? as i64)),
                    false => Some(decimals(value?, old?.trim())),
                };
                let texts: StringArray = values.iter().zip(texts).zip(from).map(text).collect();
                cast(&texts, old.data_type())?
            }
            _ => cast(new, old.data_type())?,
        };
        let is_new: BooleanArray = (0..from.len())
            .map(|i| Some(new.is_valid(i) && old.is_valid(i)))
            .collect();
        zip(&is_new, &new, &old)
    };
    let columns = document.batch.columns().iter().enumerate().map(column);
    let columns = columns.collect::<Result<Vec<_>, ArrowError>>();
    columns
        .and_then(|columns| table::with_rows(document.batch.schema(), columns, from.len()))
        .map_err(|err| err.to_string())
}

/// Formats a number with as many decimals as a text has; if that gives the same text, takes the next number
/// instead.
fn decimals(value: f64, like: &str) -> String {
    if like.contains(['e', 'E']) {
        return format!("{value:e}");
    }
    let places = like.split_once('.').map_or(0, |(_, decimals)| decimals.len()).min(17);
    let text = format!("{value:.places$}");
    match text == like {
        true => format!("{:.places$}", value + 10f64.powi(-i32::try_from(places).unwrap_or(0))),
        false => text,
    }
}
