//! CSV as columns of text: commas, fields in double quotes where they hold commas, quotes or line feeds, an
//! empty field for a missing value.

use crate::error::StageError;
use crate::visible::visible_line;
use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use stages_table_file::{Fault, Record, Records};
use std::sync::Arc;

/// Reads a CSV table with every column as text, and the line on which each row begins. The header is on the
/// first line.
///
/// # Errors
/// When the table has no header, a row has the wrong number of fields, or a quoted field does not end.
pub(super) fn read(name: &str, text: &str) -> Result<(RecordBatch, Vec<usize>), StageError> {
    let fault = |fault: Fault| {
        StageError::of_fault(
            name,
            &Fault {
                what: visible_line(&fault.what).into_owned(),
                ..fault
            },
        )
    };
    let mut records = Records::new(text, ',');
    let Some(header) = records.next().transpose().map_err(fault)? else {
        return Err(StageError::new(format!("`{name}` is empty")).hint("its first line names the columns"));
    };
    let names: Vec<&str> = header.cells.iter().map(|cell| cell.text.trim()).collect();
    let mut columns: Vec<StringBuilder> = names.iter().map(|_| StringBuilder::new()).collect();
    let mut lines = Vec::new();
    for record in records {
        let Record { line, cells, .. } = record.map_err(fault)?;
        if cells.len() != names.len() {
            return Err(StageError::new(format!(
                "`{name}`, row {line}: {} fields under a header of {}",
                cells.len(),
                names.len()
            ))
            .hint("put a field that holds a comma in double quotes"));
        }
        lines.push(line);
        for (column, cell) in columns.iter_mut().zip(&cells) {
            column.append_option(Some(cell.text.trim()).filter(|text| !text.is_empty()));
        }
    }
    let schema = Schema::new(
        names
            .iter()
            .map(|name| Field::new(*name, DataType::Utf8, true))
            .collect::<Vec<_>>(),
    );
    let arrays: Vec<ArrayRef> = columns
        .iter_mut()
        .map(|column| Arc::new(column.finish()) as ArrayRef)
        .collect();
    Ok((RecordBatch::try_new(Arc::new(schema), arrays)?, lines))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray as _;

    fn rows(text: &str) -> Result<String, String> {
        let (batch, lines) = read("t.csv", text).map_err(|err| err.message)?;
        let cell = |column: &ArrayRef, row: usize| {
            let texts = column.as_string::<i32>();
            let missing = arrow_array::Array::is_null(texts, row);
            if missing {
                "-".to_owned()
            } else {
                texts.value(row).to_owned()
            }
        };
        let row = |row: usize| {
            let cells: Vec<String> = batch.columns().iter().map(|column| cell(column, row)).collect();
            format!("{}: {}", lines[row], cells.join("|"))
        };
        Ok((0..batch.num_rows()).map(row).collect::<Vec<_>>().join("; "))
    }

    #[test]
    fn rows_have_their_lines() {
        assert_eq!(rows("a,b\n1,2\n\n3,\n").unwrap(), "2: 1|2; 4: 3|-");
        assert_eq!(rows("\u{feff}a,b\r\n1, 2\r\n3,4").unwrap(), "2: 1|2; 3: 3|4");
        assert_eq!(
            rows("a,b\n\"x,\"\"y\"\"\nz\",2\n\"\",4\n").unwrap(),
            "2: x,\"y\"\nz|2; 4: -|4"
        );
        assert_eq!(rows("a,b\n").unwrap(), "");
    }

    #[test]
    fn what_is_no_table_is_named() {
        assert_eq!(rows("").unwrap_err(), "`t.csv` is empty");
        assert_eq!(
            rows("a,b\n1,2\n1,2,3\n").unwrap_err(),
            "`t.csv`, row 3: 3 fields under a header of 2"
        );
        assert_eq!(
            rows("a\n\"x\n").unwrap_err(),
            "`t.csv`, row 2: a quoted field does not end"
        );
        assert_eq!(
            rows("a\n\"x\"y\n").unwrap_err(),
            "`t.csv`, row 2: `y` after a closing quote"
        );
        assert_eq!(
            rows("a,b\n\"\"x,1\n").unwrap_err(),
            "`t.csv`, row 2: `x` after a closing quote"
        );
    }
}
