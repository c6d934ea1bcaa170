//! CSV as columns of text: commas, fields in double quotes where they hold commas, quotes or line feeds, an
//! empty field for a missing value.

use crate::error::StageError;
use crate::visible::visible_line;
use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use std::sync::Arc;

/// Reads a table, every column as text, with the line that each row begins on; the header is on the first.
///
/// # Errors
/// When it has no header, a row has another number of fields, or a quoted field does not end.
pub(super) fn read(name: &str, text: &str) -> Result<(RecordBatch, Vec<usize>), StageError> {
    let mut records = Records {
        name,
        rest: text.strip_prefix('\u{feff}').unwrap_or(text),
        line: 1,
    };
    let mut fields = Vec::new();
    let Some(_) = records.next(&mut fields)? else {
        return Err(StageError::new(format!("`{name}` is empty")).hint("its first line names the columns"));
    };
    let names: Vec<String> = fields.iter().map(|field| field.trim().to_owned()).collect();
    let mut columns: Vec<StringBuilder> = names.iter().map(|_| StringBuilder::new()).collect();
    let mut lines = Vec::new();
    while let Some(line) = records.next(&mut fields)? {
        if fields.len() != names.len() {
            return Err(StageError::new(format!(
                "`{name}`, row {line}: {} fields under a header of {}",
                fields.len(),
                names.len()
            ))
            .hint("put a field that holds a comma in double quotes"));
        }
        lines.push(line);
        for (column, field) in columns.iter_mut().zip(&fields) {
            match field.trim() {
                "" => column.append_null(),
                field => column.append_value(field),
            }
        }
    }
    let schema = Schema::new(
        names
            .iter()
            .map(|name| Field::new(name, DataType::Utf8, true))
            .collect::<Vec<_>>(),
    );
    let arrays: Vec<ArrayRef> = columns
        .iter_mut()
        .map(|column| Arc::new(column.finish()) as ArrayRef)
        .collect();
    Ok((RecordBatch::try_new(Arc::new(schema), arrays)?, lines))
}

/// The records of a text, one after another.
struct Records<'a> {
    name: &'a str,
    rest: &'a str,
    /// The line that `rest` begins on, from 1.
    line: usize,
}

impl Records<'_> {
    /// The fields of the next record that is not an empty line, with its line; `None` at the end.
    fn next(&mut self, fields: &mut Vec<String>) -> Result<Option<usize>, StageError> {
        loop {
            if self.rest.is_empty() {
                return Ok(None);
            }
            let line = self.line;
            fields.clear();
            self.record(fields)?;
            if !matches!(fields.as_slice(), [only] if only.trim().is_empty()) {
                return Ok(Some(line));
            }
        }
    }

    fn record(&mut self, fields: &mut Vec<String>) -> Result<(), StageError> {
        loop {
            let mut field = String::new();
            if let Some(quoted) = self.rest.strip_prefix('"') {
                self.rest = quoted;
                self.quoted(&mut field)?;
            }
            let end = self.rest.find([',', '\n']).unwrap_or(self.rest.len());
            let (plain, rest) = self.rest.split_at(end);
            if !field.is_empty() && !plain.trim().is_empty() {
                return Err(self.error(format!("`{}` after a closing quote", visible_line(plain.trim()))));
            }
            field.push_str(plain.strip_suffix('\r').unwrap_or(plain));
            fields.push(field);
            match rest.strip_prefix(',') {
                Some(rest) => self.rest = rest,
                None => {
                    self.rest = rest.strip_prefix('\n').unwrap_or(rest);
                    self.line += 1;
                    return Ok(());
                }
            }
        }
    }

    /// The rest of a field in quotes, in which two of them stand for one.
    fn quoted(&mut self, field: &mut String) -> Result<(), StageError> {
        let first = self.line;
        loop {
            let Some((inside, rest)) = self.rest.split_once('"') else {
                self.line = first;
                return Err(self.error("a quoted field does not end".to_owned()));
            };
            field.push_str(inside);
            self.line += inside.bytes().filter(|byte| *byte == b'\n').count();
            match rest.strip_prefix('"') {
                Some(rest) => {
                    field.push('"');
                    self.rest = rest;
                }
                None => {
                    self.rest = rest;
                    return Ok(());
                }
            }
        }
    }

    fn error(&self, what: String) -> StageError {
        StageError::new(format!("`{}`, row {}: {what}", self.name, self.line))
            .hint("a quote within a field in quotes is written twice")
    }
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
    }
}
