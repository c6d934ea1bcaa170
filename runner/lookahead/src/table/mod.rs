//! Files as tables with dates, and back. A file's bytes determine its format; its name counts only where they
//! are ambiguous.

mod csv;
mod json;
mod numpy;

use crate::moment::{self, Stamp};
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, StringArray};
use arrow_cast::cast;
use arrow_cast::display::array_value_to_string;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use bytes::Bytes;
use csv::Csv;
use stages_table_file::Container;
use stages_table_file::packing::{self, Packing, Wanted};
use std::borrow::Cow;
use std::sync::Arc;

/// A table in a file.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// The table's name within the file; empty if the file holds one table.
    pub name: String,
    /// The columns.
    pub batch: RecordBatch,
    /// The index of the date column, if there is one.
    pub date: Option<usize>,
    /// The date of each row; `None` if the rows have no dates.
    pub stamps: Option<Vec<Stamp>>,
}

/// The format in which a table can be written again.
#[derive(Debug)]
pub(crate) enum Form {
    Csv(Csv),
    Json(json::Style),
    Columns(Container),
    Array(numpy::Header),
    /// The table cannot be written with other rows.
    Fixed,
}

impl Table {
    /// Creates a table whose dates are in one of its columns.
    pub(crate) fn new(batch: RecordBatch) -> Self {
        let dated = moment::table_dates(&batch);
        let (date, stamps) = dated.map_or((None, None), |(date, stamps)| (Some(date), Some(stamps)));
        Self {
            date,
            stamps,
            ..Self::undated(batch)
        }
    }

    /// Creates a table without dates, or with dates only by chance, such as a column of a vector.
    fn undated(batch: RecordBatch) -> Self {
        Self {
            name: String::new(),
            batch,
            date: None,
            stamps: None,
        }
    }

    /// Creates a table whose first column is the date.
    pub(crate) fn named(name: &str, batch: RecordBatch, stamps: Vec<Stamp>) -> Self {
        Self {
            name: name.to_owned(),
            batch,
            date: Some(0),
            stamps: Some(stamps),
        }
    }

    /// Creates the table of an array: the first column of a matrix may hold its dates.
    fn array(header: &numpy::Header, batch: RecordBatch) -> Self {
        let mut table = Self::new(batch);
        let is_plain = header.fields.len() == 1 && header.fields[0].0.is_empty();
        if table.stamps.is_none() && is_plain && (2..=numpy::MOST_COLUMNS).contains(&header.width()) {
            table.stamps = matrix_dates(table.batch.column(0));
            table.date = table.stamps.as_ref().map(|_| 0);
        }
        table
    }
}

/// The dates of the first column of a matrix: numbers such as 20240131, or whole minutes since 1970, in
/// order.
fn matrix_dates(column: &ArrayRef) -> Option<Vec<Stamp>> {
    let floats = cast(column, &DataType::Float64).ok()?;
    let values = floats.as_primitive_opt::<Float64Type>()?.values();
    let is_whole = |value: &f64| value.fract() == 0.0 && value.abs() < 9e15;
    if values.len() < 2 || !values.iter().all(is_whole) {
        return None;
    }
    let stamps = moment::integer_dates(values.iter().map(|value| *value as i64), true)?;
    let is_time = stamps.iter().all(|stamp| stamp.start % 60_000_000 == 0);
    (is_time && stamps.is_sorted() && stamps.first() < stamps.last()).then_some(stamps)
}

/// The packing of a file, and the files in it by name.
pub(crate) fn unpack<'a>(path: &str, bytes: &'a [u8]) -> Result<(Packing, packing::Entries<'a>), String> {
    let (packing, mut files) =
        packing::unpack(bytes, packing::UNPACKED_LIMIT, Wanted::All).map_err(|fault| match &fault.entry {
            Some(entry) => format!("`{entry}` {}", fault.what),
            None => fault.what,
        })?;
    if packing != Packing::Zip {
        let ending = match packing {
            Packing::Gzip => ".gz",
            Packing::Zstd => ".zst",
            Packing::Plain | Packing::Zip => "",
        };
        path.strip_suffix(ending).unwrap_or(path).clone_into(&mut files[0].0);
    }
    Ok((packing, files))
}

/// Reads the tables of the unpacked files of `path`, each with its format.
pub(crate) fn read(
    path: &str,
    packing: Packing,
    files: &[(String, Cow<'_, [u8]>)],
) -> Result<Vec<(Form, Table)>, String> {
    let mut tables = Vec::new();
    for (name, bytes) in files {
        let (form, mut table) = read_one(name, bytes).map_err(|reason| match packing {
            Packing::Zip => format!("`{name}` {reason}"),
            _ => reason,
        })?;
        if packing == Packing::Zip {
            name.trim_end_matches(".npy").clone_into(&mut table.name);
        }
        tables.push((form, table));
    }
    share_dates(&mut tables);
    // There is one file per day, named by its date, without dates in the file.
    for ((_, table), (name, _)) in tables.iter_mut().zip(files) {
        if let (None, Some(stamp)) = (
            &table.stamps,
            moment::name_date(name).or_else(|| moment::name_date(path)),
        ) {
            table.stamps = Some(vec![stamp; table.batch.num_rows()]);
        }
    }
    Ok(tables)
}

fn read_one(path: &str, bytes: &[u8]) -> Result<(Form, Table), String> {
    if let Some(container) = Container::of(bytes) {
        let batch = container
            .read(&Bytes::copy_from_slice(bytes))
            .map_err(|fault| fault.what)?;
        return Ok((Form::Columns(container), Table::new(plain(&batch)?)));
    }
    match bytes {
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => {
            let (header, batch) = numpy::read(bytes)?;
            let table = Table::array(&header, batch);
            Ok((Form::Array(header), table))
        }
        _ => match std::str::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => {
                if text.trim_start().starts_with(['{', '[']) {
                    let read = json::read(bytes);
                    // Text may begin with a bracket, too.
                    if read.is_ok() || path.ends_with(".json") || path.ends_with(".jsonl") {
                        return read;
                    }
                }
                Ok(read_text(text))
            }
            _ => Err(unknown(path)),
        },
    }
}

fn unknown(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        Some((_, ending)) => format!("is of a format that cannot be read (`.{ending}`)"),
        None => "is of a format that cannot be read".to_owned(),
    }
}

/// Reads a text as a table: cells with separators, or a single column of lines.
fn read_text(text: &str) -> (Form, Table) {
    if let Some(csv) = Csv::read(text) {
        let table = Table::new(csv.batch());
        return (Form::Csv(csv), table);
    }
    let lines: StringArray = text.lines().map(Some).collect();
    let rows = lines.len();
    (
        Form::Fixed,
        Table::undated(batch(vec![("line".to_owned(), Arc::new(lines))], rows)),
    )
}

/// Copies the dates of an array that holds only dates to the other arrays of the archive with as many rows.
fn share_dates(tables: &mut [(Form, Table)]) {
    if !tables.iter().all(|(form, _)| matches!(form, Form::Array(_))) {
        return;
    }
    let mut alone: Vec<usize> = (0..tables.len())
        .filter(|&i| tables[i].1.batch.num_columns() == 1)
        .collect();
    alone.sort_by_key(|&i| tables[i].1.name.clone());
    let typed = alone.iter().find(|&&i| tables[i].1.stamps.is_some());
    // Numbers are dates if the array's name says so.
    let found = typed.or_else(|| alone.iter().find(|&&i| moment::is_date_name(&tables[i].1.name)));
    let Some(&i) = found else { return };
    let dates = &mut tables[i].1;
    if dates.stamps.is_none() {
        dates.stamps = moment::column_dates(dates.batch.column(0).as_ref(), true);
        dates.date = dates.stamps.as_ref().map(|_| 0);
    }
    let Some(stamps) = dates.stamps.clone() else { return };
    for (_, table) in tables {
        if table.stamps.is_none() && table.batch.num_rows() == stamps.len() {
            table.stamps = Some(stamps.clone());
        }
    }
}

impl Form {
    /// Writes rows in this format.
    pub(crate) fn write(&self, batch: &RecordBatch) -> Result<Vec<u8>, String> {
        match self {
            Self::Csv(csv) => Ok(csv.write(batch)),
            Self::Json(style) => json::write(style, batch),
            Self::Columns(container) => container.write(batch).map_err(|fault| fault.what),
            Self::Array(header) => numpy::write(header, batch),
            Self::Fixed => Err("cannot be written".to_owned()),
        }
    }

    /// The reason why a table of this format cannot be written with other rows.
    pub(crate) fn refusal(&self) -> Option<&'static str> {
        match self {
            Self::Array(header) if !header.is_by_rows() => {
                Some("is an array in Fortran's order, whose future cannot be changed")
            }
            Self::Fixed => Some("is of a format whose future cannot be changed"),
            _ => None,
        }
    }
}

/// Converts dictionary-encoded texts to plain texts.
fn plain(batch: &RecordBatch) -> Result<RecordBatch, String> {
    let columns = batch
        .schema_ref()
        .fields()
        .iter()
        .zip(batch.columns())
        .map(|(field, array)| {
            Ok(match array.data_type() {
                DataType::Dictionary(_, values) => {
                    let field = Arc::new(Field::new(field.name(), (**values).clone(), true));
                    (field, cast(array, values)?)
                }
                _ => (field.clone(), array.clone()),
            })
        });
    let columns = columns
        .collect::<Result<Vec<_>, ArrowError>>()
        .map_err(|err| err.to_string())?;
    let (fields, arrays): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    let schema = Schema::new_with_metadata(fields, batch.schema_ref().metadata().clone());
    with_rows(Arc::new(schema), arrays, batch.num_rows()).map_err(|err| err.to_string())
}

/// Creates a table with the given number of rows.
pub(crate) fn with_rows(
    schema: Arc<Schema>,
    arrays: Vec<ArrayRef>,
    rows: usize,
) -> Result<RecordBatch, ArrowError> {
    RecordBatch::try_new_with_options(schema, arrays, &RecordBatchOptions::new().with_row_count(Some(rows)))
}

/// Creates a table of named columns of equal length, which may have missing values.
fn batch(columns: Vec<(String, ArrayRef)>, rows: usize) -> RecordBatch {
    let fields = columns
        .iter()
        .map(|(name, array)| Field::new(name, array.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    with_rows(schema.clone(), arrays, rows).unwrap_or_else(|_| RecordBatch::new_empty(schema))
}

/// A cell as text.
fn cell(array: &ArrayRef, row: usize) -> Result<String, ArrowError> {
    array_value_to_string(array, row)
}
#[cfg(test)]
mod tests {
    use super::*;

    fn shown(path: &str, bytes: &[u8]) -> String {
        let read = unpack(path, bytes).and_then(|(packing, files)| read(path, packing, &files));
        match read {
            Err(reason) => reason,
            Ok(tables) => {
                let one = |(_, table): &(Form, Table)| {
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
