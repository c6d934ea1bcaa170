//! A file that a program wrote, as a table.

use super::columns::Table;
use super::csv;
use crate::error::StageError;
use crate::visible::visible_line;
use bytes::Bytes;
use stages_table_file::Container;

/// A file that a program wrote.
#[derive(Clone, Debug)]
pub struct WrittenFile {
    /// The file's name in the output, for messages.
    pub name: String,
    /// The file's bytes; a table is Parquet or, failing that, CSV.
    pub bytes: Bytes,
}

/// Reads a file as a table.
pub(super) fn read(file: &WrittenFile) -> Result<Table, StageError> {
    let name = visible_line(&file.name).into_owned();
    if Container::of(&file.bytes) == Some(Container::Parquet) {
        let batch = Container::Parquet.read(&file.bytes);
        return Ok(Table {
            batch: batch.map_err(|fault| StageError::of_fault(&name, &fault))?,
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
