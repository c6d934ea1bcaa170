//! Rows and cells as shown in messages, and hashes of rows.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A hash of each row.
pub(super) fn hashes(batch: &RecordBatch) -> Vec<u64> {
    let mut rows = vec![DefaultHasher::new(); batch.num_rows()];
    for column in batch.columns() {
        add(column, &mut rows);
    }
    rows.into_iter().map(|row| row.finish()).collect()
}

/// The hashes of rows, independent of the rows' order.
pub(super) fn sorted(batch: &RecordBatch) -> Vec<u64> {
    let mut rows = hashes(batch);
    rows.sort_unstable();
    rows
}

fn add(column: &ArrayRef, rows: &mut [DefaultHasher]) {
    let data = column.to_data();
    let texts = crate::moment::texts(column.as_ref());
    match (data.data_type().primitive_width(), texts) {
        (Some(width), _) => {
            let values = &data.buffers()[0].as_slice()[data.offset() * width..];
            for (row, (hash, value)) in rows.iter_mut().zip(values.chunks_exact(width)).enumerate() {
                column.is_valid(row).then_some(value).hash(hash);
            }
        }
        (None, Some(texts)) => {
            for (hash, text) in rows.iter_mut().zip(texts) {
                text.hash(hash);
            }
        }
        (None, None) if *column.data_type() == DataType::Boolean => {
            for (hash, value) in rows.iter_mut().zip(column.as_boolean()) {
                value.hash(hash);
            }
        }
        (None, None) => {
            for (row, hash) in rows.iter_mut().enumerate() {
                cell_text(column, row).hash(hash);
            }
        }
    }
}

/// The cells of a row.
pub(super) fn texts(batch: &RecordBatch, row: usize, but: Option<usize>) -> String {
    let columns = batch.columns().iter().enumerate().filter(|(i, _)| Some(*i) != but);
    shortened(
        columns
            .map(|(_, column)| cell_text(column, row))
            .collect::<Vec<_>>()
            .join(","),
        2000,
    )
}

fn cell_text(column: &ArrayRef, row: usize) -> String {
    let options = FormatOptions::default().with_null("null");
    let column = stages_core::table::displayed(column);
    let formatter = ArrayFormatter::try_new(column.as_ref(), &options).ok();
    formatter
        .and_then(|formatter| formatter.value(row).try_to_string().ok())
        .unwrap_or_else(|| "?".to_owned())
}

pub(super) fn cell(column: &ArrayRef, row: usize) -> String {
    shortened(cell_text(column, row), 40)
}

fn shortened(text: String, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most - 1).chain(['…']).collect(),
        false => text,
    }
}

/// The cells of a row that identify it.
pub(super) fn about(batch: &RecordBatch, row: usize, column: Option<usize>) -> String {
    const NAMES: [&str; 9] = [
        "symbol", "tic", "ticker", "expiry", "root", "strike", "call", "strategy", "contract",
    ];
    if row >= batch.num_rows() {
        return String::new();
    }
    let schema = batch.schema();
    let fields = schema.fields().iter().enumerate();
    let cells = fields
        .filter(|(i, field)| Some(*i) != column && NAMES.contains(&field.name().as_str()))
        .map(
            |(i, field)| match (field.data_type(), cell(batch.column(i), row).as_str()) {
                (DataType::Boolean, "true") => "call".to_owned(),
                (DataType::Boolean, _) => "put".to_owned(),
                (_, text) => text.to_owned(),
            },
        );
    cells.collect::<Vec<_>>().join(" ")
}
