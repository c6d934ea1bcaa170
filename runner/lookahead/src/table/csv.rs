//! Text with separators. Lines keep their text, so that unchanged rows are written as they were.

use super::batch;
use crate::moment;
use arrow_array::cast::AsArray;
use arrow_array::{Array as _, ArrayRef, RecordBatch, StringArray};
use std::sync::Arc;

/// A text of cells.
#[derive(Clone, Debug)]
pub struct Csv {
    separator: char,
    /// The names of the columns.
    pub names: Vec<String>,
    header: Option<String>,
    /// The cells of each row, without quotes.
    pub rows: Vec<Vec<String>>,
    /// The columns whose cells are in quotes.
    quoted: Vec<bool>,
}

impl Csv {
    /// Reads a text; `None` if its rows have different numbers of cells, or one cell that is not a date.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = records(text);
        let first = lines.first()?;
        let count = |separator: char| cells(first, separator).len();
        let separator = [',', '\t', ';', '|']
            .into_iter()
            .max_by_key(|&separator| (count(separator), separator == ','))?;
        let mut rows: Vec<Vec<String>> = lines.iter().map(|line| cells(line, separator)).collect();
        let width = rows[0].len();
        if rows.iter().any(|row| row.len() != width) {
            return None;
        }
        // The first row is the header, unless it holds a date or a number.
        let is_value = |cell: &String| {
            cell.trim().parse::<f64>().is_ok() || moment::text_dates(&[cell], false).is_some()
        };
        let has_header = !rows[0].iter().any(is_value);
        let (names, header) = if has_header {
            (rows.remove(0), Some(first.to_string()))
        } else {
            ((1..=width).map(|i| format!("column {i}")).collect(), None)
        };
        let csv = Self {
            separator,
            names,
            header,
            quoted: quoted(lines.last().unwrap_or(first), separator),
            rows,
        };
        // A column alone is lines of text, unless it has a name and holds values.
        let is_column =
            csv.header.is_some() && !csv.rows.is_empty() && csv.rows.iter().all(|row| is_value(&row[0]));
        (width > 1 || is_column).then_some(csv)
    }

    /// The cells as text columns; empty cells are null.
    pub fn batch(&self) -> RecordBatch {
        let column = |i: usize| -> ArrayRef {
            let cells = self
                .rows
                .iter()
                .map(|row| Some(row[i].as_str()).filter(|cell| !cell.is_empty()));
            Arc::new(cells.collect::<StringArray>())
        };
        let names = self.names.iter().enumerate();
        batch(
            names.map(|(i, name)| (name.clone(), column(i))).collect(),
            self.rows.len(),
        )
    }

    /// The text of rows of these columns.
    pub fn write(&self, batch: &RecordBatch) -> Vec<u8> {
        let mut text = String::new();
        if let Some(line) = &self.header {
            text.push_str(line);
            text.push('\n');
        }
        for row in 0..batch.num_rows() {
            for (i, column) in batch.columns().iter().enumerate() {
                if i > 0 {
                    text.push(self.separator);
                }
                let cells = column.as_string::<i32>();
                if cells.is_valid(row) {
                    text.push_str(&self.quote(i, cells.value(row)));
                }
            }
            text.push('\n');
        }
        text.into_bytes()
    }

    fn quote(&self, column: usize, cell: &str) -> String {
        match self.quoted[column] || cell.contains([self.separator, '"', '\n']) {
            true => format!("\"{}\"", cell.replace('"', "\"\"")),
            false => cell.to_owned(),
        }
    }
}

/// The lines of a text that are not blank; a line goes on within quotes.
fn records(text: &str) -> Vec<&str> {
    let (mut records, mut from, mut quoted) = (Vec::new(), 0, false);
    for (i, byte) in text.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' if !quoted => {
                records.push(&text[from..i]);
                from = i + 1;
            }
            _ => {}
        }
    }
    records.push(&text[from..]);
    let trimmed = records
        .into_iter()
        .map(|record| record.strip_suffix('\r').unwrap_or(record));
    trimmed.filter(|record| !record.trim().is_empty()).collect()
}

/// The cells of a record, without quotes.
fn cells(record: &str, separator: char) -> Vec<String> {
    let (mut cells, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = record.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            '"' => quoted = !quoted,
            c if c == separator && !quoted => cells.push(std::mem::take(&mut cell)),
            c => cell.push(c),
        }
    }
    cells.push(cell);
    cells
}

/// The cells of a record that are in quotes.
fn quoted(record: &str, separator: char) -> Vec<bool> {
    let (mut quoted, mut inside, mut starts) = (Vec::new(), false, true);
    for c in record.chars() {
        if starts {
            quoted.push(c == '"');
        }
        inside ^= c == '"';
        starts = c == separator && !inside;
    }
    quoted.extend(starts.then_some(false));
    quoted
}
