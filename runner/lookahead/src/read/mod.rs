//! Readers of the table formats that programs write. The bytes tell the format, the file's name only where
//! they do not.

mod columnar;
mod csv;
mod json;
mod numpy;

pub use columnar::Container;
pub use csv::Csv;
pub use json::JsonRows;
pub use numpy::{Array as NpyArray, dates_of_arrays, npy as array};

use super::moment::{self, Stamp};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray};
use arrow_schema::{Field, Schema};
use flate2::read::MultiGzDecoder;
use std::io::Read as _;
use std::sync::Arc;

/// The most that a compressed file may unpack to, in bytes.
pub const UNPACKED_LIMIT: u64 = 4 << 30;

/// A table of a file.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name within the file; empty if the file holds one table.
    pub name: String,
    /// Its columns.
    pub batch: RecordBatch,
    /// The column of the dates, where there is one.
    pub date: Option<usize>,
    /// The date of each row; `None` if they have none.
    pub stamps: Option<Vec<Stamp>>,
}

impl Table {
    fn new(name: String, batch: RecordBatch) -> Self {
        let (date, stamps) =
            moment::of_batch(&batch).map_or((None, None), |(date, stamps)| (Some(date), Some(stamps)));
        Self {
            name,
            batch,
            date,
            stamps,
        }
    }

    /// The table without its dates: one that has dates only by chance, such as a column of a vector.
    fn undated(name: String, batch: RecordBatch) -> Self {
        Self {
            name,
            batch,
            date: None,
            stamps: None,
        }
    }
}

/// The format of a file's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Parquet,
    ArrowFile,
    ArrowStream,
    Npy,
    Zip,
    Gzip,
    Json,
    /// Text, in lines.
    Text,
    /// None of these.
    Unknown,
}

impl Format {
    /// The format of a file with these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        match bytes {
            [b'P', b'A', b'R', b'1', ..] => Self::Parquet,
            [b'A', b'R', b'R', b'O', b'W', b'1', ..] => Self::ArrowFile,
            [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Self::Npy,
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Self::Zip,
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0xff, 0xff, 0xff, 0xff, ..] => Self::ArrowStream,
            _ => match std::str::from_utf8(bytes) {
                Ok(text) if text.contains('\0') => Self::Unknown,
                Ok(text) if text.trim_start().starts_with(['{', '[']) => Self::Json,
                Ok(_) => Self::Text,
                Err(_) => Self::Unknown,
            },
        }
    }
}

/// Reads the tables of a file.
///
/// # Errors
/// The reason why it cannot be read.
pub fn tables(path: &str, bytes: &[u8]) -> Result<Vec<Table>, String> {
    let mut tables = match Format::of(bytes) {
        Format::Parquet => vec![Table::new(String::new(), columnar::parquet(bytes)?)],
        Format::ArrowFile => vec![Table::new(String::new(), columnar::arrow_file(bytes)?)],
        Format::ArrowStream => vec![Table::new(String::new(), columnar::arrow_stream(bytes)?)],
        Format::Npy => vec![numpy::npy(bytes)?],
        Format::Zip => numpy::npz(bytes)?,
        Format::Gzip => return tables(path.strip_suffix(".gz").unwrap_or(path), &gunzip(bytes)?),
        Format::Json => match json::tables(bytes) {
            Ok(tables) => tables,
            // Text may begin with a bracket, too.
            Err(reason) if path.ends_with(".json") || path.ends_with(".jsonl") => return Err(reason),
            Err(_) => vec![text(bytes)?],
        },
        Format::Text => vec![text(bytes)?],
        Format::Unknown => return Err(unknown(path)),
    };
    // A file of each day, without dates in it.
    if let Some(stamp) = moment::of_name(path) {
        for table in &mut tables {
            if table.stamps.is_none() {
                table.stamps = Some(vec![stamp; table.batch.num_rows()]);
            }
        }
    }
    Ok(tables)
}

fn unknown(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        Some((_, ending)) => format!("is of a format that cannot be read (`.{ending}`)"),
        None => "is of a format that cannot be read".to_owned(),
    }
}

/// A text as a table: cells with separators, or a column of lines.
fn text(bytes: &[u8]) -> Result<Table, String> {
    if let Some(csv) = Csv::read(bytes) {
        return Ok(Table::new(String::new(), csv.batch()));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned())?;
    let lines = text.lines().map(|line| Some(line.to_owned())).collect();
    Ok(Table::undated(
        String::new(),
        text_columns(vec![("line".to_owned(), lines)]),
    ))
}

/// Unpacks gzip.
///
/// # Errors
/// When it is damaged or unpacks to more than [`UNPACKED_LIMIT`].
pub fn gunzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut unpacked = Vec::new();
    let mut reader = MultiGzDecoder::new(bytes).take(UNPACKED_LIMIT);
    reader
        .read_to_end(&mut unpacked)
        .map_err(|err| format!("cannot be unpacked: {err}"))?;
    match unpacked.len() as u64 {
        UNPACKED_LIMIT => Err("unpacks to more than 4 GiB".to_owned()),
        _ => Ok(unpacked),
    }
}

/// A table of text columns of one length.
fn text_columns(columns: Vec<(String, Vec<Option<String>>)>) -> RecordBatch {
    let rows = columns.first().map_or(0, |(_, cells)| cells.len());
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, _)| Field::new(name, arrow_schema::DataType::Utf8, true))
        .collect();
    let arrays: Vec<ArrayRef> = columns
        .into_iter()
        .map(|(_, cells)| Arc::new(StringArray::from(cells)) as ArrayRef)
        .collect();
    let schema = Arc::new(Schema::new(fields));
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), arrays, &options)
        .unwrap_or_else(|_| RecordBatch::new_empty(schema))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(path: &str, bytes: &[u8]) -> String {
        match tables(path, bytes) {
            Err(reason) => reason,
            Ok(tables) => {
                let one = |table: &Table| {
                    let names: Vec<&str> = table
                        .batch
                        .schema_ref()
                        .fields()
                        .iter()
                        .map(|field| field.name().as_str())
                        .collect();
                    let dates = table.stamps.as_ref().map_or("-".to_owned(), |stamps| {
                        stamps.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
                    });
                    format!(
                        "{}[{}] {} rows, {dates}",
                        table.name,
                        names.join(" "),
                        table.batch.num_rows()
                    )
                };
                tables.iter().map(one).collect::<Vec<_>>().join("; ")
            }
        }
    }

    #[test]
    fn formats_by_their_bytes() {
        assert_eq!(
            shown("a.csv", b"date,x\n2024-01-01,1\n2024-01-02,2\n"),
            "[date x] 2 rows, 2024-01-01 2024-01-02"
        );
        assert_eq!(
            shown("a", b"2024-01-01;1\n2024-01-02;2\n"),
            "[column 1 column 2] 2 rows, 2024-01-01 2024-01-02"
        );
        assert_eq!(
            shown("a.csv", b"date,text\n2024-01-01,\"a,\nb\"\n"),
            "[date text] 1 rows, 2024-01-01"
        );
        assert_eq!(shown("a.txt", b"3\n4\n"), "[line] 2 rows, -");
        assert_eq!(
            shown("out/2024-01-01.txt", b"3\n4\n"),
            "[line] 2 rows, 2024-01-01 2024-01-01"
        );
        assert_eq!(
            shown(
                "a.jsonl",
                b"{\"date\":\"2024-01-01\",\"x\":1}\n{\"y\":2,\"date\":\"2024-01-02\"}\n"
            ),
            "[date x y] 2 rows, 2024-01-01 2024-01-02"
        );
        assert_eq!(
            shown("a.json", b"[{\"date\":\"2024-01-01\",\"x\":1}]"),
            "[date x] 1 rows, 2024-01-01"
        );
        assert_eq!(
            shown("a.json", b"{\"2024-01-01\": 1.5, \"2024-01-02\": 2}"),
            "[key value] 2 rows, 2024-01-01 2024-01-02"
        );
        assert_eq!(
            shown("a.json", b"{\"date\": [\"2024-01-01\"], \"x\": [2]}"),
            "[date x] 1 rows, 2024-01-01"
        );
        assert_eq!(shown("a.json", b"{\"mean\": 1.5}"), "[mean] 1 rows, -");
        assert_eq!(
            shown("a.pkl", b"\x80\x04\x95"),
            "is of a format that cannot be read (`.pkl`)"
        );
        assert_eq!(shown("a.csv", b""), "[line] 0 rows, -");
    }
}
