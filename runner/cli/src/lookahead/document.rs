//! Files of dated rows that can be written again with other rows: the sources of a pipeline.

use super::moment::{self, Stamp};
use super::read::{self, Container, Csv, Format, JsonLines};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Date32Array, Float32Array, Float64Array, Int32Array, Int64Array,
    LargeStringArray, RecordBatch, RecordBatchOptions, StringArray, StringViewArray, UInt64Array,
};
use arrow::datatypes::{
    DataType, Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{Cursor, Read as _, Write as _};
use std::sync::Arc;

/// The value of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    /// A date: days since 1970-01-01.
    Date(i32),
    /// Of a type that is left as it is.
    Other,
}

/// A row of a new version: a row of the old one, with replaced cells.
#[derive(Clone, Debug)]
pub struct Row {
    pub from: usize,
    pub changes: Vec<(usize, Cell)>,
}

/// A table with dates that can be written again.
pub struct Document {
    body: Body,
    pub batch: RecordBatch,
    pub stamps: Vec<Stamp>,
    pub date: Option<usize>,
}

enum Body {
    Csv(Csv),
    Lines(JsonLines),
    Columns(Container),
}

impl Document {
    /// Reads a table; `Ok(None)` if it has no dates.
    ///
    /// # Errors
    /// The reason why it cannot be read, or not be written again.
    pub fn read(path: &str, bytes: &[u8]) -> Result<Option<Self>, String> {
        let (body, batch) = match Format::of(bytes) {
            Format::Parquet => (Body::Columns(Container::Parquet), Container::Parquet.read(bytes)?),
            Format::ArrowFile => (Body::Columns(Container::ArrowFile), Container::ArrowFile.read(bytes)?),
            Format::ArrowStream => (
                Body::Columns(Container::ArrowStream),
                Container::ArrowStream.read(bytes)?,
            ),
            Format::Json => match JsonLines::read(bytes) {
                Some(lines) => {
                    let batch = lines.batch();
                    (Body::Lines(lines), batch)
                }
                None => return Self::unless_dated(path, bytes),
            },
            Format::Text => match Csv::read(bytes) {
                Some(csv) => {
                    let batch = csv.batch();
                    (Body::Csv(csv), batch)
                }
                None => return Self::unless_dated(path, bytes),
            },
            Format::Npy | Format::Zip | Format::Gzip => return Self::unless_dated(path, bytes),
            Format::Unknown => {
                let ending = path
                    .rsplit_once('.')
                    .map(|(_, ending)| format!(" (`.{ending}`)"))
                    .unwrap_or_default();
                return Err(format!("is of a format that cannot be read{ending}"));
            }
        };
        let of_name = || moment::of_name(path).map(|stamp| (None, vec![stamp; batch.num_rows()]));
        let dated = moment::of_batch(&batch).map(|(date, stamps)| (Some(date), stamps));
        if let (None, Some(column)) = (&dated, moment::with_some_dates(&batch)) {
            return Err(format!("has rows without a date in the column `{column}`"));
        }
        Ok(dated.or_else(of_name).map(|(date, stamps)| Self {
            body,
            batch,
            stamps,
            date,
        }))
    }

    /// A file that cannot be written again is a fixed input, unless it holds dates.
    fn unless_dated(path: &str, bytes: &[u8]) -> Result<Option<Self>, String> {
        // Dates in a program are constants.
        if is_program(path) {
            return Ok(None);
        }
        let text = std::str::from_utf8(bytes).is_ok();
        let dated = match read::tables(path, bytes) {
            Ok(tables) => tables.iter().any(|table| table.stamps.is_some()) || !text,
            Err(reason) => return Err(reason),
        };
        let loose = text && std::str::from_utf8(bytes).is_ok_and(|text| moment::named_in(text).len() > 1);
        match dated || loose {
            true => Err("is of a format whose future cannot be changed".to_owned()),
            false => Ok(None),
        }
    }

    /// The value of a cell; a text that is a number in a file of text is a number.
    pub fn cell(&self, row: usize, column: usize) -> Cell {
        let array = self.batch.column(column);
        if array.is_null(row) {
            return Cell::Null;
        }
        let text = |text: &str| match &self.body {
            Body::Columns(_) => Cell::Text(text.to_owned()),
            Body::Csv(_) => number(text),
            Body::Lines(lines) => {
                let name = self.batch.schema_ref().field(column).name();
                let value = lines.rows[row]
                    .0
                    .iter()
                    .find(|(key, _)| key == name)
                    .map(|(_, value)| value);
                match value {
                    Some(serde_json::Value::String(text)) => Cell::Text(text.clone()),
                    Some(serde_json::Value::Bool(value)) => Cell::Bool(*value),
                    Some(serde_json::Value::Number(_)) => number(text),
                    _ => Cell::Other,
                }
            }
        };
        match array.data_type() {
            DataType::Utf8 => text(array.as_string::<i32>().value(row)),
            DataType::LargeUtf8 => text(array.as_string::<i64>().value(row)),
            DataType::Utf8View => text(array.as_string_view().value(row)),
            DataType::Boolean => Cell::Bool(array.as_boolean().value(row)),
            DataType::Float64 => Cell::Float(array.as_primitive::<Float64Type>().value(row)),
            DataType::Float32 => Cell::Float(f64::from(array.as_primitive::<Float32Type>().value(row))),
            DataType::Int64 => Cell::Int(array.as_primitive::<Int64Type>().value(row)),
            DataType::Int32 => Cell::Int(i64::from(array.as_primitive::<Int32Type>().value(row))),
            DataType::Int16 => Cell::Int(i64::from(array.as_primitive::<Int16Type>().value(row))),
            DataType::Int8 => Cell::Int(i64::from(array.as_primitive::<Int8Type>().value(row))),
            DataType::UInt64 => {
                i64::try_from(array.as_primitive::<UInt64Type>().value(row)).map_or(Cell::Other, Cell::Int)
            }
            DataType::UInt32 => Cell::Int(i64::from(array.as_primitive::<UInt32Type>().value(row))),
            DataType::UInt16 => Cell::Int(i64::from(array.as_primitive::<UInt16Type>().value(row))),
            DataType::UInt8 => Cell::Int(i64::from(array.as_primitive::<UInt8Type>().value(row))),
            DataType::Date32 => Cell::Date(array.as_primitive::<Date32Type>().value(row)),
            _ => Cell::Other,
        }
    }

    /// The bytes of the table with these rows.
    ///
    /// # Errors
    /// When a column's type cannot be written.
    pub fn write(&self, rows: &[Row]) -> Result<Vec<u8>, String> {
        match &self.body {
            Body::Csv(csv) => {
                let changes: Vec<Vec<(usize, String)>> = rows.iter().map(|row| self.csv_changes(csv, row)).collect();
                Ok(csv.write(rows.iter().map(|row| row.from).zip(changes.iter().map(Vec::as_slice))))
            }
            Body::Lines(lines) => {
                let schema = self.batch.schema();
                let value = |(column, cell): &(usize, Cell)| {
                    let value = match cell {
                        Cell::Int(value) => (*value).into(),
                        Cell::Float(value) => (*value).into(),
                        Cell::Bool(value) => (*value).into(),
                        Cell::Text(text) => text.as_str().into(),
                        Cell::Date(_) | Cell::Null | Cell::Other => serde_json::Value::Null,
                    };
                    (schema.field(*column).name().clone(), value)
                };
                let changes: Vec<Vec<(String, serde_json::Value)>> =
                    rows.iter().map(|row| row.changes.iter().map(value).collect()).collect();
                Ok(lines.write(rows.iter().map(|row| row.from).zip(changes.iter().map(Vec::as_slice))))
            }
            Body::Columns(container) => container.write(&self.columns(rows)?),
        }
    }

    /// Changed cells as text. A number keeps the decimals that it has.
    fn csv_changes(&self, csv: &Csv, row: &Row) -> Vec<(usize, String)> {
        let text = |(column, cell): &(usize, Cell)| {
            let old = &csv.rows[row.from][*column];
            let text = match cell {
                Cell::Int(value) => value.to_string(),
                Cell::Float(value) => decimals(*value, old),
                Cell::Bool(value) => value.to_string(),
                Cell::Text(text) => text.clone(),
                Cell::Date(_) | Cell::Null | Cell::Other => String::new(),
            };
            (*column, text)
        };
        row.changes.iter().map(text).collect()
    }

    fn columns(&self, rows: &[Row]) -> Result<RecordBatch, String> {
        let indices: UInt64Array = rows.iter().map(|row| Some(row.from as u64)).collect();
        let mut arrays = Vec::with_capacity(self.batch.num_columns());
        for (i, column) in self.batch.columns().iter().enumerate() {
            let taken = arrow::compute::take(column.as_ref(), &indices, None).map_err(|err| err.to_string())?;
            let changes: Vec<Option<&Cell>> = rows
                .iter()
                .map(|row| {
                    row.changes
                        .iter()
                        .find(|(column, _)| *column == i)
                        .map(|(_, cell)| cell)
                })
                .collect();
            arrays.push(if changes.iter().any(Option::is_some) {
                replaced(&taken, &changes)
            } else {
                taken
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        RecordBatch::try_new_with_options(self.batch.schema(), arrays, &options).map_err(|err| err.to_string())
    }
}

/// True for a file of instructions, not of data.
pub fn is_program(path: &str) -> bool {
    const ENDINGS: [&str; 15] = [
        "py", "sh", "awk", "r", "jl", "js", "pl", "rb", "sql", "toml", "yaml", "yml", "md", "ini", "cfg",
    ];
    path.rsplit_once('.')
        .is_some_and(|(_, ending)| ENDINGS.contains(&ending.to_ascii_lowercase().as_str()))
}

/// A text that may be a number. Leading zeros are a code's.
fn number(text: &str) -> Cell {
    let plain = text.trim();
    let is_code = plain.len() > 1 && plain.starts_with('0') && !plain.starts_with("0.");
    if is_code {
        return Cell::Text(text.to_owned());
    }
    match (plain.parse::<i64>(), plain.parse::<f64>()) {
        (Ok(value), _) => Cell::Int(value),
        (_, Ok(value)) if value.is_finite() => Cell::Float(value),
        _ => Cell::Text(text.to_owned()),
    }
}

/// A number with as many decimals as a text has, or the one beside it where that is the same text.
fn decimals(value: f64, like: &str) -> String {
    let like = like.trim();
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

/// A column with replaced cells; others of its cells stay.
fn replaced(column: &ArrayRef, changes: &[Option<&Cell>]) -> ArrayRef {
    macro_rules! numbers {
        ($ty:ty, $array:ty, $native:ty) => {{
            let old = column.as_primitive::<$ty>();
            let new: $array = old
                .iter()
                .zip(changes)
                .map(|(old, change)| match change {
                    Some(Cell::Int(value)) => Some(*value as $native),
                    Some(Cell::Float(value)) => Some(*value as $native),
                    Some(Cell::Null) => None,
                    _ => old,
                })
                .collect();
            Arc::new(new) as ArrayRef
        }};
    }
    macro_rules! texts {
        ($old:expr, $array:ty) => {{
            let new: $array = $old
                .iter()
                .zip(changes)
                .map(|(old, change)| match change {
                    Some(Cell::Text(text)) => Some(text.as_str()),
                    Some(Cell::Null) => None,
                    _ => old,
                })
                .collect();
            Arc::new(new) as ArrayRef
        }};
    }
    match column.data_type() {
        DataType::Float64 => numbers!(Float64Type, Float64Array, f64),
        DataType::Float32 => numbers!(Float32Type, Float32Array, f32),
        DataType::Int64 => numbers!(Int64Type, Int64Array, i64),
        DataType::Int32 => numbers!(Int32Type, Int32Array, i32),
        DataType::Int16 => numbers!(Int16Type, arrow::array::Int16Array, i16),
        DataType::Int8 => numbers!(Int8Type, arrow::array::Int8Array, i8),
        DataType::UInt64 => numbers!(UInt64Type, UInt64Array, u64),
        DataType::UInt32 => numbers!(UInt32Type, arrow::array::UInt32Array, u32),
        DataType::UInt16 => numbers!(UInt16Type, arrow::array::UInt16Array, u16),
        DataType::UInt8 => numbers!(UInt8Type, arrow::array::UInt8Array, u8),
        DataType::Utf8 => texts!(column.as_string::<i32>(), StringArray),
        DataType::LargeUtf8 => texts!(column.as_string::<i64>(), LargeStringArray),
        DataType::Utf8View => texts!(column.as_string_view(), StringViewArray),
        DataType::Boolean => {
            let new: BooleanArray = column
                .as_boolean()
                .iter()
                .zip(changes)
                .map(|(old, change)| {
                    if let Some(Cell::Bool(value)) = change {
                        Some(*value)
                    } else {
                        old
                    }
                })
                .collect();
            Arc::new(new)
        }
        DataType::Date32 => {
            let new: Date32Array = column
                .as_primitive::<Date32Type>()
                .iter()
                .zip(changes)
                .map(|(old, change)| {
                    if let Some(Cell::Date(value)) = change {
                        Some(*value)
                    } else {
                        old
                    }
                })
                .collect();
            Arc::new(new)
        }
        _ => column.clone(),
    }
}

/// A file: one table, or an archive of some.
pub struct Packed {
    packing: Packing,
    /// The name and the bytes of each table.
    members: Vec<(String, Vec<u8>)>,
}

enum Packing {
    Plain,
    Gzip,
    Zip,
}

impl Packed {
    /// Unpacks a file.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn open(path: &str, bytes: Vec<u8>) -> Result<Self, String> {
        let short = |ending: &str| path.strip_suffix(ending).unwrap_or(path).to_owned();
        match Format::of(&bytes) {
            Format::Gzip => {
                let members = vec![(short(".gz"), read::gunzip(&bytes)?)];
                Ok(Self {
                    packing: Packing::Gzip,
                    members,
                })
            }
            Format::Zip if !path.ends_with(".npz") => {
                let damaged = |err: zip::result::ZipError| format!("cannot be unpacked: {err}");
                let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(damaged)?;
                let mut members = Vec::new();
                for i in 0..archive.len() {
                    let mut entry = archive.by_index(i).map_err(damaged)?;
                    let mut bytes = Vec::new();
                    entry
                        .read_to_end(&mut bytes)
                        .map_err(|err| format!("cannot be unpacked: {err}"))?;
                    let name = entry.name().map_err(damaged)?.into_owned();
                    members.push((name, bytes));
                }
                Ok(Self {
                    packing: Packing::Zip,
                    members,
                })
            }
            _ => Ok(Self {
                packing: Packing::Plain,
                members: vec![(path.to_owned(), bytes)],
            }),
        }
    }

    /// Its tables; `None` if one has no dates.
    ///
    /// # Errors
    /// The reason why one cannot be read.
    pub fn documents(&self) -> Result<Option<Vec<Document>>, String> {
        self.members
            .iter()
            .map(|(name, bytes)| Document::read(name, bytes))
            .collect()
    }

    /// The file with other tables, in the same order.
    ///
    /// # Errors
    /// When it cannot be packed.
    pub fn pack(&self, tables: Vec<Vec<u8>>) -> Result<Vec<u8>, String> {
        match self.packing {
            Packing::Plain => Ok(tables.concat()),
            Packing::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                encoder
                    .write_all(&tables.concat())
                    .and_then(|()| encoder.finish())
                    .map_err(|err| err.to_string())
            }
            Packing::Zip => {
                let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
                let options =
                    zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
                for ((name, _), bytes) in self.members.iter().zip(tables) {
                    writer.start_file(name, options).map_err(|err| err.to_string())?;
                    writer.write_all(&bytes).map_err(|err| err.to_string())?;
                }
                Ok(writer.finish().map_err(|err| err.to_string())?.into_inner())
            }
        }
    }
}
