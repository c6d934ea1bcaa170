//! A file that a program wrote, as a table.

use super::columns::Table;
use super::csv;
use crate::error::StageError;
use crate::visible::visible_line;
use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// A file that a program wrote.
#[derive(Clone, Debug)]
pub struct WrittenFile {
    /// Its name in the output, for messages.
    pub name: String,
    /// Its contents; a table is Parquet, or else CSV.
    pub bytes: Bytes,
}

/// Reads a table.
///
/// # Errors
/// When the file is neither Parquet nor CSV, or damaged.
pub(super) fn read(file: &WrittenFile) -> Result<Table, StageError> {
    let name = visible_line(&file.name).into_owned();
    let unreadable = |err: &dyn std::fmt::Display| {
        StageError::new(format!("`{name}` cannot be read: {err}"))
            .hint("see whether the program wrote it to its end")
    };
    if file.bytes.starts_with(b"PAR1") {
        let builder =
            ParquetRecordBatchReaderBuilder::try_new(file.bytes.clone()).map_err(|err| unreadable(&err))?;
        let schema = builder.schema().clone();
        let reader = builder
            .with_batch_size(1 << 16)
            .build()
            .map_err(|err| unreadable(&err))?;
        let batches: Vec<RecordBatch> = reader.collect::<Result<_, _>>().map_err(|err| unreadable(&err))?;
        return Ok(Table {
            batch: concat_batches(&schema, &batches)?,
            lines: None,
            name,
        });
    }
    let is_text = |text: &&str| !text.contains('\0');
    let Some(text) = std::str::from_utf8(&file.bytes).ok().filter(is_text) else {
        return Err(StageError::new(format!("`{name}` is neither Parquet nor CSV"))
            .hint("write one of them, CSV in UTF-8 and not compressed"));
    };
    let (batch, lines) = csv::read(&name, text)?;
    Ok(Table {
        name,
        batch,
        lines: Some(lines),
    })
}
