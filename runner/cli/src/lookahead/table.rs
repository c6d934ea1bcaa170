//! Tables with dates in any file format.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Date32Type, Field, Schema, TimeUnit};
use arrow::ipc::reader::FileReader;
use cache::{Blob, Entry, Store};
use datasets::Date;
use stages_core::{StageError, table};
use std::io::Cursor;
use std::sync::Arc;

/// A table, and the date of each row if it has dates.
pub struct Table {
    pub batch: RecordBatch,
    pub dates: Option<Vec<Date>>,
}

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Parquet,
    Arrow,
    /// Text cells with this separator.
    Text(char),
}

impl Form {
    /// The format by file name; `None` if it is not a table.
    pub fn of(name: &str) -> Option<Self> {
        match name.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
            "parquet" => Some(Self::Parquet),
            "arrow" => Some(Self::Arrow),
            "csv" => Some(Self::Text(',')),
            "tsv" => Some(Self::Text('\t')),
            _ => None,
        }
    }
}

/// Reads a file of an artifact; `None` if it is not a table.
pub fn read(store: &Store, entry: &Entry) -> Result<Option<Table>, StageError> {
    let Some(form) = Form::of(&entry.path) else {
        return Ok(None);
    };
    let blob = store.blob(entry.blob)?;
    Ok(match form {
        Form::Parquet => of_batch(table::from_parquet(blob)),
        Form::Arrow => of_batch(from_arrow(blob)),
        Form::Text(separator) => of_text(&blob, separator).map(|text| text.table()),
    })
}

/// The table of a batch; `None` if the batch could not be read.
fn of_batch(batch: Result<RecordBatch, StageError>) -> Option<Table> {
    let batch = batch.ok()?;
    let dates = dates_of(&batch);
    Some(Table { batch, dates })
}

fn from_arrow(blob: Blob) -> Result<RecordBatch, StageError> {
    let reader = FileReader::try_new(Cursor::new(blob), None)?;
    let schema = reader.schema();
    let batches = reader.collect::<Result<Vec<_>, _>>()?;
    Ok(arrow::compute::concat_batches(&schema, &batches)?)
}

/// True if a column of this name holds the date at which a row was known. An `expiry` is not one.
fn is_date_name(name: &str) -> bool {
    let name = name.trim().to_ascii_lowercase();
    [
        "date",
        "day",
        "datetime",
        "time",
        "timestamp",
        "trade_date",
        "quote_date",
        "asof",
        "as_of",
    ]
    .contains(&name.as_str())
}

fn dates_of(batch: &RecordBatch) -> Option<Vec<Date>> {
    let schema = batch.schema();
    let column = schema.fields().iter().position(|field| is_date_name(field.name()))?;
    let column = batch.column(column);
    let days = |micros: i64, day: i64| i32::try_from(micros.div_euclid(day)).map(Date).ok();
    if column.null_count() > 0 {
        return None;
    }
    match column.data_type() {
        DataType::Date32 => Some(
            column
                .as_primitive::<Date32Type>()
                .values()
                .iter()
                .map(|&day| Date(day))
                .collect(),
        ),
        DataType::Timestamp(unit, _) => {
            let day = 86_400
                * match unit {
                    TimeUnit::Second => 1,
                    TimeUnit::Millisecond => 1_000,
                    TimeUnit::Microsecond => 1_000_000,
                    TimeUnit::Nanosecond => 1_000_000_000,
                };
            let whole = column.to_data();
            let values: &[i64] = whole.buffer(0);
            values
                .iter()
                .take(column.len())
                .map(|&value| days(value, day))
                .collect()
        }
        DataType::Utf8 => column.as_string::<i32>().iter().map(|text| date(text?)).collect(),
        _ => None,
    }
}

/// The date at the start of a text.
fn date(text: &str) -> Option<Date> {
    let text = text.trim();
    let (date, rest) = (text.get(..10)?, &text[10..]);
    if rest.starts_with(|c: char| c.is_ascii_alphanumeric() && c != 'T') {
        return None;
    }
    date.parse().ok()
}

/// A text file of cells.
pub struct Text {
    separator: char,
    names: Vec<String>,
    header: bool,
    rows: Vec<Vec<String>>,
    /// The column of the date.
    column: Option<usize>,
}

/// Reads a text file of cells; `None` if its rows differ in length or it is not UTF-8.
pub fn of_text(bytes: &[u8], separator: char) -> Option<Text> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut rows: Vec<Vec<String>> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| cells(line, separator))
        .collect();
    let width = rows.first()?.len();
    if rows.iter().any(|row| row.len() != width) {
        return None;
    }
    // The first row is the header, unless it contains a date.
    let header = !rows[0].iter().any(|cell| date(cell).is_some());
    let names = if header {
        rows.remove(0)
    } else {
        (1..=width).map(|i| format!("column {i}")).collect()
    };
    let has_dates = |column: usize| !rows.is_empty() && rows.iter().all(|row| date(&row[column]).is_some());
    let column = (0..width)
        .find(|&column| is_date_name(&names[column]) && has_dates(column))
        .or_else(|| has_dates(0).then_some(0));
    Some(Text {
        separator,
        names,
        header,
        rows,
        column,
    })
}

/// The cells of a line; quoted if they contain the separator.
fn cells(line: &str, separator: char) -> Vec<String> {
    let (mut cells, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.trim_end_matches('\r').chars() {
        match c {
            '"' => {
                quoted = !quoted;
                cell.push(c);
            }
            c if c == separator && !quoted => cells.push(std::mem::take(&mut cell)),
            c => cell.push(c),
        }
    }
    cells.push(cell);
    cells
}

impl Text {
    fn dates(&self) -> Option<Vec<Date>> {
        let column = self.column?;
        self.rows.iter().map(|row| date(&row[column])).collect()
    }

    /// The table with text columns.
    pub fn table(&self) -> Table {
        let fields: Vec<Field> = self
            .names
            .iter()
            .map(|name| Field::new(name, DataType::Utf8, false))
            .collect();
        let arrays: Vec<ArrayRef> = (0..self.names.len())
            .map(|column| {
                let cells = self.rows.iter().map(|row| row[column].as_str());
                Arc::new(StringArray::from_iter_values(cells)) as ArrayRef
            })
            .collect();
        let options = arrow::record_batch::RecordBatchOptions::new().with_row_count(Some(self.rows.len()));
        let schema = Arc::new(Schema::new(fields));
        let batch = RecordBatch::try_new_with_options(schema.clone(), arrays, &options);
        Table {
            batch: batch.unwrap_or_else(|_| RecordBatch::new_empty(schema)),
            dates: self.dates(),
        }
    }

    /// Replaces every number of a row after `at` by `other` of the row's date, the column number and the value. Returns the number of rows and the text.
    pub fn change(mut self, at: Date, other: impl Fn(Date, usize, f64) -> f64) -> Option<(u64, String)> {
        let dates = self.dates()?;
        let mut changed = 0;
        for (row, &date) in self.rows.iter_mut().zip(&dates).filter(|(_, date)| **date > at) {
            let mut any = false;
            for (column, cell) in row.iter_mut().enumerate() {
                if Some(column) != self.column
                    && let Ok(number) = cell.trim().parse::<f64>()
                    && number.is_finite()
                {
                    *cell = other(date, column, number).to_string();
                    any = true;
                }
            }
            changed += u64::from(any);
        }
        let mut text = String::new();
        let separator = self.separator.to_string();
        for row in self.header.then_some(&self.names).into_iter().chain(&self.rows) {
            text.push_str(&row.join(&separator));
            text.push('\n');
        }
        (changed > 0).then_some((changed, text))
    }
}
