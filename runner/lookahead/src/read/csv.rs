//! Text with separators. Lines keep their text, so that unchanged rows are written as they were.

use super::text_columns;
use crate::moment;
use arrow_array::RecordBatch;

/// A text of cells.
#[derive(Clone, Debug)]
pub struct Csv {
    separator: char,
    /// The names of the columns.
    pub names: Vec<String>,
    header: Option<String>,
    /// The cells of each row, without quotes.
    pub rows: Vec<Vec<String>>,
    /// The text of each row, without the end of its line.
    lines: Vec<String>,
}

impl Csv {
    /// Reads a text; `None` if its rows have different numbers of cells, or one cell that is no date.
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
        let mut lines: Vec<String> = lines.into_iter().map(str::to_owned).collect();
        let width = rows[0].len();
        if rows.iter().any(|row| row.len() != width) {
            return None;
        }
        // The first row is the header, unless it holds a date or a number.
        let is_value =
            |cell: &String| cell.trim().parse::<f64>().is_ok() || moment::of_texts(&[cell], false).is_some();
        let has_header = !rows[0].iter().any(is_value);
        let (names, header) = if has_header {
            (rows.remove(0), Some(lines.remove(0)))
        } else {
            ((1..=width).map(|i| format!("column {i}")).collect(), None)
        };
        let csv = Self {
            separator,
            names,
            header,
            rows,
            lines,
        };
        // A column alone is lines of text, unless it has a name and holds values.
        let is_column =
            csv.header.is_some() && !csv.rows.is_empty() && csv.rows.iter().all(|row| is_value(&row[0]));
        (width > 1 || is_column).then_some(csv)
    }

    /// Its cells as text columns; empty cells are null.
    pub fn batch(&self) -> RecordBatch {
        let cell = |cell: &String| (!cell.is_empty()).then(|| cell.clone());
        let column = |i: usize| self.rows.iter().map(|row| cell(&row[i])).collect();
        text_columns(
            self.names
                .iter()
                .enumerate()
                .map(|(i, name)| (name.clone(), column(i)))
                .collect(),
        )
    }

    /// The text of a row, as it stands.
    pub fn line(&self, row: usize) -> &str {
        &self.lines[row]
    }

    /// The text of a row with replaced cells.
    pub fn changed(&self, row: usize, changes: &[(usize, String)]) -> String {
        let new = |column: usize| changes.iter().find(|(changed, _)| *changed == column);
        let cell = |(column, old): (usize, &String)| self.quote(new(column).map_or(old, |(_, text)| text));
        let cells: Vec<String> = self.rows[row].iter().enumerate().map(cell).collect();
        cells.join(&self.separator.to_string())
    }

    /// The text with these lines.
    pub fn write<'a>(&'a self, lines: impl Iterator<Item = &'a str>) -> Vec<u8> {
        let mut text = String::new();
        for line in self.header.as_deref().into_iter().chain(lines) {
            text.push_str(line);
            text.push('\n');
        }
        text.into_bytes()
    }

    fn quote(&self, cell: &str) -> String {
        match cell.contains([self.separator, '"', '\n']) {
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
