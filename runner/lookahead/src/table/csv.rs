//! Text with separators. Lines keep their text, so that unchanged rows are written as they were.

use super::batch;
use crate::moment;
use arrow_array::cast::AsArray;
use arrow_array::{Array as _, ArrayRef, RecordBatch, StringArray};
use stages_table_file::text::separator;
use stages_table_file::{Record, Records, first_record};
use std::sync::Arc;

/// A text that consists of cells.
#[derive(Clone, Debug)]
pub(crate) struct Csv {
    separator: char,
    /// The names of the columns.
    names: Vec<String>,
    header: Option<String>,
    /// The cells of each row, without quotes.
    rows: Vec<Vec<String>>,
    /// The columns whose cells are quoted.
    quoted: Vec<bool>,
    /// The byte-order mark, if the text begins with one.
    mark: &'static str,
    /// The line terminator.
    line_end: &'static str,
}

impl Csv {
    /// Parses a text; `None` if its rows have different numbers of cells, or a single cell that is not a
    /// date.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let first = first_record(text);
        let separator = char::from(separator(first));
        let records: Vec<Record<'_>> = Records::new(text, separator).collect::<Result<_, _>>().ok()?;
        let quoted = records.last()?.cells.iter().map(|cell| cell.is_quoted).collect();
        let cells = |record: &Record<'_>| record.cells.iter().map(|cell| cell.text.clone()).collect();
        let mut rows: Vec<Vec<String>> = records.iter().map(cells).collect();
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
            (rows.remove(0), Some(records[0].text.to_owned()))
        } else {
            ((1..=width).map(|i| format!("column {i}")).collect(), None)
        };
        let csv = Self {
            separator,
            names,
            header,
            quoted,
            rows,
            mark: if text.starts_with('\u{feff}') { "\u{feff}" } else { "" },
            line_end: if first.ends_with("\r\n") { "\r\n" } else { "\n" },
        };
        // A single column is lines of text, unless it has a name and holds values.
        let is_column =
            csv.header.is_some() && !csv.rows.is_empty() && csv.rows.iter().all(|row| is_value(&row[0]));
        (width > 1 || is_column).then_some(csv)
    }

    /// The cells as text columns; empty cells are null.
    pub(crate) fn batch(&self) -> RecordBatch {
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

    /// Formats rows of these columns as text.
    pub(crate) fn write(&self, batch: &RecordBatch) -> Vec<u8> {
        let mut text = self.mark.to_owned();
        if let Some(line) = &self.header {
            text.push_str(line);
            text.push_str(self.line_end);
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
            text.push_str(self.line_end);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_written_as_it_was() {
        for text in [
            "\u{feff}date,x\r\n2024-01-01,1\r\n2024-01-02,2\r\n",
            "date;\"name\"\n2024-01-01;\"a,\"\"b\"\"\"\n2024-01-02;\"c\nd\"\n",
            "2024-01-01|1\n2024-01-02|\n",
        ] {
            let csv = Csv::read(text).unwrap();
            assert_eq!(String::from_utf8(csv.write(&csv.batch())).unwrap(), text);
        }
        assert!(Csv::read("a,b\n\"x\"y,1\n").is_none());
    }
}
