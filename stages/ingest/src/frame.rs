//! A vendor's table as columns; CSV is read by polars. Every value that cannot be read is an error that names
//! file, row and column.
//!
//! Rows are counted as a text editor or spreadsheet does: the header of a CSV file is row 1. A Parquet file
//! has no header row, so that its first row is 1.

use crate::parquet_columns::{self, Stored};
use crate::unpack::{Format, Numbering, Packed, Part};
use crate::value::{self, Dates, shown};
use arrow_array::StringArray;
use arrow_schema::ArrowError;
use arrow_schema::DataType as ArrowType;
use bytes::Bytes;
use datasets::Date;
use datasets::layout::{Condition, Mapping, Unit, normal};
use polars_core::prelude::{DataFrame, DataType, Field, Float64Chunked, Schema, StringChunked};
use polars_io::SerReader;
use polars_io::csv::read::{CsvParseOptions, CsvReadOptions};
use stages_core::StageError;
use stages_table_file::text::{
    Shape, fields, first_line, line_of, separator, shape, text_of, without_empty_lines,
};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The column names in a table's header, unchanged.
///
/// # Errors
/// When the header is missing or unreadable.
pub fn header(packed: &Packed) -> Result<Vec<String>, StageError> {
    if let Some(part) = &packed.part {
        return Ok(part.header.clone());
    }
    match packed.format {
        Format::Json => Err(
            StageError::new(format!("`{}` is a JSON document, and no table", packed.place))
                .hint("`layout: { json: { rows: … }, … }` says where its rows are"),
        ),
        Format::Csv => {
            let line = first_line(text_of(&packed.bytes));
            let line = std::str::from_utf8(line).map_err(|_| not_text(packed, 1))?;
            StageError::new(format!("`{}` has no header", packed.place))
                .hint("the first line must name the columns")
                .when(line.trim().is_empty())?;
            Ok(fields(line, separator(line)))
        }
        Format::Parquet => guarded(&packed.place, || parquet_columns::names(packed)),
    }
}

/// Refuses a header with two wanted columns of the same name, since only one of them could be read.
///
/// # Errors
/// When a wanted name is repeated.
pub fn check_unique(place: &str, header: &[String], wanted: impl Fn(&str) -> bool) -> Result<(), StageError> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (i, name) in header.iter().enumerate() {
        if let Some(first) = seen.insert(normal(name), i)
            && wanted(&normal(name))
        {
            return Err(StageError::new(format!(
                "`{place}` has two columns `{}`: the columns {} and {}",
                shown(name.trim()),
                first + 1,
                i + 1
            ))
            .hint("rename or remove one of them in the file: names are compared without case and blanks"));
        }
    }
    Ok(())
}

/// The columns of a vendor's table that are read.
pub struct Frame {
    place: String,
    /// The text whose lines number the rows; `None` for Parquet and JSON.
    text: Option<Bytes>,
    numbering: Numbering,
    names: Vec<String>,
    columns: Vec<Column>,
    /// The number of rows in the columns, before any selection.
    all_rows: usize,
    /// The indices of the selected rows, in order; `None` if all are selected.
    kept: Option<Vec<usize>>,
    /// Values that stand for missing ones, in addition to the usual.
    missing: Vec<String>,
}

/// A column of a table.
enum Column {
    /// A CSV column, as strings.
    Text(StringChunked),
    /// A CSV column in which every value is a plain number or missing.
    Numbers(Float64Chunked),
    /// A column as stored in Parquet.
    Stored(Stored),
}

impl Column {
    /// Returns whether the column's numbers are of single precision.
    fn is_single_precision(&self) -> bool {
        matches!(self, Self::Stored(stored) if stored.is_single_precision())
    }

    /// The type of the column's values, in words.
    fn type_name(&self) -> String {
        match self {
            Self::Text(_) => "text".to_owned(),
            Self::Numbers(_) => "numbers".to_owned(),
            Self::Stored(stored) => match stored.data_type() {
                ArrowType::Boolean => "bool".to_owned(),
                _ if stored.is_text() => "text".to_owned(),
                ty => ty.to_string(),
            },
        }
    }
}

impl Frame {
    /// Reads the columns whose normalised names ([`normal`]) are wanted.
    ///
    /// # Errors
    /// When the table is damaged, or a row and the header differ in their number of fields.
    pub fn read(packed: &Packed, wanted: impl Fn(&str) -> bool) -> Result<Self, StageError> {
        Self::read_with_numbers(packed, wanted, |_| false)
    }

    /// Reads the columns whose normalised names ([`normal`]) are wanted. Columns for which `is_number` holds
    /// are parsed as numbers at once if all their values are plain numbers.
    ///
    /// # Errors
    /// When the table is damaged, or a row and the header differ in their number of fields.
    pub fn read_with_numbers(
        packed: &Packed,
        wanted: impl Fn(&str) -> bool,
        is_number: impl Fn(&str) -> bool,
    ) -> Result<Self, StageError> {
        let header = header(packed)?;
        check_unique(&packed.place, &header, &wanted)?;
        let mut names: Vec<String> = Vec::new();
        let mut indices = Vec::new();
        let mut numbers = Vec::new();
        for (i, name) in header.iter().enumerate() {
            let name = normal(name);
            if wanted(&name) {
                if is_number(&name) {
                    numbers.push(i);
                }
                names.push(name);
                indices.push(i);
            }
        }
        let (text, (columns, rows)) = match (&packed.part, packed.format) {
            (Some(part), _) => (None, stored(part, &indices)),
            (None, Format::Csv) => {
                let text = packed.bytes.slice_ref(text_of(&packed.bytes));
                let read = csv(packed, &text, &header, &indices, &numbers)?;
                (Some(text), read)
            }
            (None, Format::Parquet | Format::Json) => {
                let (columns, rows) = guarded(&packed.place, || parquet_columns::read(packed, &indices))?;
                (None, (columns.into_iter().map(Column::Stored).collect(), rows))
            }
        };
        StageError::new(format!(
            "`{}` cannot be read: its header and its columns differ",
            packed.place
        ))
        .when(columns.len() != names.len())?;
        Ok(Self {
            place: packed.place.clone(),
            text,
            numbering: packed.numbering,
            names,
            all_rows: rows,
            columns,
            kept: None,
            missing: Vec::new(),
        })
    }

    /// Treats the given values as missing ones too.
    #[must_use]
    pub fn with_missing(mut self, missing: &[String]) -> Self {
        self.missing = missing.to_vec();
        self
    }

    /// Selects the rows that satisfy a condition.
    ///
    /// # Errors
    /// When the table lacks a column of the condition.
    pub fn keep(&mut self, condition: &Condition) -> Result<(), StageError> {
        let mut keep = vec![true; self.all_rows];
        for comparison in &condition.all {
            self.texts(&comparison.column, |row, text| {
                keep[row] &= comparison.holds(text);
                Ok(())
            })?;
        }
        let kept: Vec<usize> = (0..keep.len()).filter(|row| keep[*row]).collect();
        self.kept = (kept.len() < keep.len()).then_some(kept);
        Ok(())
    }

    /// The values of the selected rows, from the values of all rows.
    fn select<T: Copy>(&self, values: Vec<T>) -> Vec<T> {
        match &self.kept {
            Some(kept) => kept.iter().map(|row| values[*row]).collect(),
            None => values,
        }
    }

    /// The number of selected rows.
    pub fn rows(&self) -> usize {
        self.kept.as_ref().map_or(self.all_rows, Vec::len)
    }

    /// Joins columns of a second table: `names` are its columns, with whether each is wanted, and `find`
    /// gives its row for a key in the column `on`. Returns the number of rows with a match.
    pub fn join<'t>(
        &mut self,
        on: &str,
        names: impl Iterator<Item = (String, bool)>,
        find: impl Fn(&str) -> Option<&'t [String]>,
    ) -> Result<usize, StageError> {
        let mut rows: Vec<Option<&[String]>> = Vec::with_capacity(self.rows());
        self.texts(on, |_, key| {
            rows.push(find(key));
            Ok(())
        })?;
        for (i, (name, _)) in names.enumerate().filter(|(_, (_, is_wanted))| *is_wanted) {
            let values = rows.iter().map(|row| row.map(|row| row[i].as_str()));
            self.names.push(name);
            self.columns
                .push(Column::Stored(Stored::of(Arc::new(values.collect::<StringArray>()))));
        }
        Ok(rows.iter().flatten().count())
    }

    /// Returns whether the table has the column.
    pub fn has(&self, theirs: &str) -> bool {
        self.names.contains(&normal(theirs))
    }

    /// Returns whether a column stores numbers in single precision, which are read as their shortest
    /// decimals.
    pub fn is_single_precision(&self, theirs: &str) -> bool {
        matches!(self.column(theirs), Ok(column) if column.is_single_precision())
    }

    fn column(&self, theirs: &str) -> Result<&Column, StageError> {
        let name = normal(theirs);
        let i = self.names.iter().position(|n| *n == name);
        i.map(|i| &self.columns[i])
            .ok_or_else(|| StageError::new(format!("`{}` has no column `{theirs}`", self.place)))
    }

    /// An error about the value in a row of the column `theirs`.
    pub fn error(&self, row: usize, theirs: &str, what: &str) -> StageError {
        let row = self.kept.as_ref().map_or(row, |kept| kept[row]);
        let row = match (&self.text, self.numbering) {
            (Some(text), Numbering::Lines(before)) => line_of(text, row).saturating_add_signed(before),
            (_, Numbering::RowsAfter(before)) => before + row + 1,
            _ => row + 1,
        };
        StageError::new(format!("`{}`, row {row}, column `{theirs}`: {what}", self.place))
    }

    /// The numbers of a column in our unit, NaN where missing.
    ///
    /// # Errors
    /// When a value is not a number.
    pub fn numbers(&self, mapping: &Mapping) -> Result<Vec<f64>, StageError> {
        let mut values = self.raw_numbers(&mapping.theirs)?;
        match &mapping.unit {
            Unit::AsIs => {}
            Unit::Times(factor) => values.iter_mut().for_each(|value| *value *= factor),
            Unit::Per(number) => values.iter_mut().for_each(|value| *value /= number),
            Unit::DividedBy(other) => {
                let divisors = self.raw_numbers(other)?;
                for (value, divisor) in values.iter_mut().zip(divisors) {
                    *value = if divisor > 0.0 { *value / divisor } else { f64::NAN };
                }
            }
        }
        Ok(values)
    }

    fn raw_numbers(&self, theirs: &str) -> Result<Vec<f64>, StageError> {
        let mut values = self.plain_numbers(theirs)?;
        let missing: Vec<f64> = self.missing.iter().filter_map(|text| text.parse().ok()).collect();
        if !missing.is_empty() {
            for value in &mut values {
                if missing.contains(value) {
                    *value = f64::NAN;
                }
            }
        }
        Ok(values)
    }

    fn plain_numbers(&self, theirs: &str) -> Result<Vec<f64>, StageError> {
        let values = match self.column(theirs)? {
            Column::Numbers(numbers) => plain(numbers),
            Column::Stored(stored) if stored.is_numeric() => {
                stored.numbers().map_err(|err| self.unusable(theirs, &err))?
            }
            Column::Stored(stored) if !stored.is_text() => return Err(self.wrong_type(theirs, "numbers")),
            Column::Text(_) | Column::Stored(_) => {
                let mut values = Vec::with_capacity(self.rows());
                self.texts(theirs, |row, text| {
                    let is_missing = self.missing.iter().any(|missing| missing.eq_ignore_ascii_case(text));
                    let text = if is_missing { "" } else { text };
                    values.push(value::number(text).map_err(|what| self.error(row, theirs, &what))?);
                    Ok(())
                })?;
                return Ok(values);
            }
        };
        let values = self.select(values);
        if count_of_infinite(&values) > 0
            && let Some(row) = values.iter().position(|value| value.is_infinite())
        {
            return Err(self.error(row, theirs, "the number is infinite"));
        }
        Ok(values)
    }

    /// The numbers of a column as they are: NaN where missing, infinite where the value is not a finite
    /// number.
    ///
    /// # Errors
    /// When the column has values and none of them is a number.
    pub fn numbers_or_infinite(&self, theirs: &str) -> Result<Vec<f64>, StageError> {
        let mut first: Option<(usize, String)> = None;
        let values = match self.column(theirs)? {
            Column::Numbers(numbers) => self.select(plain(numbers)),
            Column::Stored(stored) if stored.is_numeric() => {
                self.select(stored.numbers().map_err(|err| self.unusable(theirs, &err))?)
            }
            Column::Stored(stored) if !stored.is_text() => return Err(self.wrong_type(theirs, "numbers")),
            Column::Text(_) | Column::Stored(_) => {
                let mut values = Vec::with_capacity(self.rows());
                self.texts(theirs, |row, text| {
                    values.push(value::number(text).unwrap_or_else(|what| {
                        first.get_or_insert((row, what));
                        f64::INFINITY
                    }));
                    Ok(())
                })?;
                values
            }
        };
        let infinite = || values.iter().position(|value| value.is_infinite());
        let first = first.or_else(|| infinite().map(|row| (row, "the number is infinite".to_owned())));
        match first {
            Some((row, what)) if !values.iter().any(|value| value.is_finite()) => {
                Err(self.error(row, theirs, &what))
            }
            _ => Ok(values),
        }
    }

    /// The dates of a column, none of which may be missing. A stored date outside the supported years is
    /// [`value::OUT_OF_RANGE`].
    ///
    /// # Errors
    /// When a value is not a date in one of the formats.
    pub fn dates(&self, theirs: &str, formats: &[String], zone: &str) -> Result<Vec<Date>, StageError> {
        let zone = self.zone(theirs, zone);
        let stored = match self.column(theirs)? {
            Column::Stored(stored) => match stored.data_type() {
                // Each instant has its date in the time zone.
                ArrowType::Timestamp(_, Some(_)) if !is_utc(zone) => None,
                ArrowType::Date32 | ArrowType::Date64 | ArrowType::Timestamp(..) => Some(stored),
                _ => None,
            },
            Column::Text(_) | Column::Numbers(_) => None,
        };
        let Some(stored) = stored else {
            let mut dates = Dates::new(formats, zone).map_err(StageError::new)?;
            let mut out = Vec::with_capacity(self.rows());
            self.texts(theirs, |row, text| {
                out.push(dates.parse(text).map_err(|what| self.error(row, theirs, &what))?);
                Ok(())
            })?;
            return Ok(out);
        };
        let dates = stored.dates().map_err(|err| self.unusable(theirs, &err))?;
        self.select(dates)
            .into_iter()
            .enumerate()
            .map(|(row, date)| date.ok_or_else(|| self.error(row, theirs, "the date is missing")))
            .collect()
    }

    /// The time zone that decides the dates of a column's instants: `zone` or, if that is empty, the one
    /// stored with the column.
    pub fn zone<'z>(&'z self, theirs: &str, zone: &'z str) -> &'z str {
        match self.column(theirs) {
            Ok(Column::Stored(stored)) if zone.is_empty() => match stored.data_type() {
                ArrowType::Timestamp(_, Some(stored)) if &**stored != "+00:00" => stored,
                _ => zone,
            },
            _ => zone,
        }
    }

    /// Passes every value as trimmed text to `take`, empty where missing.
    ///
    /// # Errors
    /// The first error that `take` returns.
    pub fn texts(
        &self,
        theirs: &str,
        mut take: impl FnMut(usize, &str) -> Result<(), StageError>,
    ) -> Result<(), StageError> {
        let mut kept = self
            .kept
            .as_ref()
            .map(|kept| kept.iter().copied().enumerate().peekable());
        let mut trimmed = |at: usize, text: Option<&str>| {
            let row = match &mut kept {
                Some(kept) => kept.next_if(|(_, kept)| *kept == at).map(|(row, _)| row),
                None => Some(at),
            };
            row.map_or(Ok(()), |row| take(row, text.unwrap_or_default().trim()))
        };
        match self.column(theirs)? {
            Column::Text(texts) => texts.iter().enumerate().try_for_each(|(row, text)| trimmed(row, text)),
            Column::Numbers(numbers) => numbers.iter().enumerate().try_for_each(|(row, number)| {
                trimmed(row, number.map(|number| number.to_string()).as_deref())
            }),
            Column::Stored(stored) => stored.texts(trimmed),
        }
    }

    fn wrong_type(&self, theirs: &str, wanted: &str) -> StageError {
        let ty = self.column(theirs).map_or_else(|_| String::new(), Column::type_name);
        StageError::new(format!(
            "`{}`, column `{theirs}`: holds {ty} and not {wanted}",
            self.place
        ))
    }

    fn unusable(&self, theirs: &str, err: &ArrowError) -> StageError {
        StageError::new(format!(
            "`{}`, column `{theirs}`: the values have no conversion: {err}",
            self.place
        ))
    }
}

/// Turns panics of a library on damaged bytes into errors.
pub(crate) fn guarded<T, E: fmt::Display>(
    place: &str,
    read: impl FnOnce() -> Result<T, E>,
) -> Result<T, StageError> {
    let damaged = |what: String| {
        StageError::new(format!("cannot read `{place}`: {what}"))
            .hint("the file may be damaged or incomplete")
    };
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(result) => result.map_err(|err| damaged(err.to_string())),
        Err(_) => Err(damaged("it is not a table that can be read".to_owned())),
    }
}

/// The numbers of a column as a vector, NaN where missing.
fn plain(numbers: &Float64Chunked) -> Vec<f64> {
    let mut values = Vec::with_capacity(numbers.len());
    for part in numbers.downcast_iter() {
        if part.validity().is_none() {
            values.extend_from_slice(part.values());
        } else {
            values.extend(part.iter().map(|number| number.copied().unwrap_or(f64::NAN)));
        }
    }
    values
}

fn is_utc(zone: &str) -> bool {
    matches!(zone, "" | "UTC" | "Etc/UTC")
}

/// The columns of a part of a file at the given indices of the header, and the number of rows.
fn stored(part: &Part, indices: &[usize]) -> (Vec<Column>, usize) {
    let place = |index: &usize| part.columns.iter().position(|column| column == index);
    let columns = indices.iter().filter_map(place);
    let columns = columns.map(|at| Column::Stored(Stored::of(part.batch.column(at).clone())));
    (columns.collect(), part.batch.num_rows())
}

fn csv(
    packed: &Packed,
    text: &[u8],
    header: &[String],
    indices: &[usize],
    numbers: &[usize],
) -> Result<(Vec<Column>, usize), StageError> {
    // `header` has already checked that the line is text.
    let separator = separator(&String::from_utf8_lossy(first_line(text)));
    let before = match packed.numbering {
        Numbering::Lines(before) => before,
        Numbering::Rows | Numbering::RowsAfter(_) => -1,
    };
    let in_file = |row: usize| row.saturating_add_signed(before.max(0));
    let Shape { uneven, has_empty } =
        shape(text, separator, header.len()).map_err(|row| not_text(packed, in_file(row)))?;
    if let Some((row, found)) = uneven {
        let row = row.saturating_add_signed(before);
        return Err(StageError::new(format!(
            "`{}`, row {row}: {found} fields under a header of {}",
            packed.place,
            header.len()
        ))
        .hint(if found > header.len() {
            "a text that holds the separator must stand in quotes"
        } else {
            "the row is cut off; the file may be incomplete"
        }));
    }
    if first_line(text).len() + 1 >= text.len() {
        let empty = |_: &usize| Column::Text(StringChunked::default());
        return Ok((indices.iter().map(empty).collect(), 0));
    }
    let text = if has_empty {
        without_empty_lines(text)
    } else {
        Cow::Borrowed(text)
    };
    let read = |schema: Option<Schema>| {
        CsvReadOptions::default()
            .with_has_header(true)
            // All columns are read as text, so that unreadable values become this crate's errors, with their
            // location.
            .with_infer_schema_length(Some(0))
            .with_schema_overwrite(schema.map(Arc::new))
            .with_projection(Some(Arc::new(indices.to_vec())))
            .with_rechunk(false)
            .with_raise_if_empty(false)
            .with_parse_options(CsvParseOptions::default().with_separator(separator))
            .into_reader_with_file_handle(Cursor::new(&text))
            .finish()
    };
    if !numbers.is_empty() {
        let fields = numbers
            .iter()
            .map(|&i| Field::new(header[i].as_str().into(), DataType::Float64));
        // If any value is not a plain number, all columns are read as text instead.
        let plain = guarded(&packed.place, || read(Some(fields.collect())));
        if let Ok(frame) = plain {
            let columns = columns_of(&packed.place, &frame)?;
            if columns.iter().all(is_finite) {
                return Ok((columns, frame.height()));
            }
        }
    }
    let frame = guarded(&packed.place, || read(None))?;
    Ok((columns_of(&packed.place, &frame)?, frame.height()))
}

/// The columns of a polars frame of texts and numbers.
fn columns_of(place: &str, frame: &DataFrame) -> Result<Vec<Column>, StageError> {
    let typed = |column: &polars_core::prelude::Column| match column.dtype() {
        DataType::Float64 => column.f64().cloned().map(Column::Numbers),
        _ => column.str().cloned().map(Column::Text),
    };
    guarded(place, || frame.columns().iter().map(typed).collect::<Result<_, _>>())
}

/// Returns whether a numeric column has no infinite value.
fn is_finite(column: &Column) -> bool {
    let Column::Numbers(numbers) = column else { return true };
    numbers
        .downcast_iter()
        .all(|part| count_of_infinite(part.values().as_slice()) == 0)
}

/// The number of infinite values, counted without a branch so that the loop is vectorised.
fn count_of_infinite(values: &[f64]) -> u64 {
    values
        .iter()
        .fold(0, |count, value| count + u64::from(value.is_infinite()))
}

fn not_text(packed: &Packed, row: usize) -> StageError {
    let place = &packed.place;
    if packed.bytes.starts_with(b"\xff\xfe") || packed.bytes.starts_with(b"\xfe\xff") {
        return StageError::new(format!("`{place}`: the text is UTF-16, and not UTF-8"))
            .hint("convert it: `iconv -f UTF-16 -t UTF-8`");
    }
    StageError::new(format!("`{place}`, row {row}: the text is not UTF-8")).hint(
        "CSV and JSON (UTF-8, perhaps gzip or zip) and Parquet files are read; `iconv -f LATIN1 -t \
            UTF-8` converts others",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::layout::JsonRows;
    use proptest::prelude::*;
    use stages_table_file::text::{PART, count_of};

    fn packed(bytes: &[u8]) -> Packed {
        Packed {
            place: "t.csv".to_owned(),
            stem: "t".to_owned(),
            path: "t.csv".to_owned(),
            bytes: bytes.to_vec().into(),
            part: None,
            format: Format::Csv,
            numbering: Numbering::Lines(0),
        }
    }

    fn number(theirs: &'static str) -> Mapping {
        Mapping {
            ours: "x".to_owned(),
            theirs: theirs.to_owned(),
            unit: Unit::AsIs,
            plus_hours: None,
            tenor_years: None,
            optional: false,
        }
    }

    #[test]
    fn an_uneven_line_is_found_in_any_part() {
        let line = "12,345\n";
        let lines = 3 * PART / line.len();
        for place in [1, lines / 2, lines - 1] {
            for wrong in ["12\n", "1,2,3\n"] {
                let text = [&line.repeat(place), "\n", wrong, &line.repeat(lines - place)].concat();
                let found = shape(text.as_bytes(), b',', 2).ok().unwrap();
                assert_eq!(found.uneven, Some((place + 2, wrong.split(',').count())));
            }
            let bad = [
                line.repeat(place).as_bytes(),
                b"\xff,2\n",
                line.repeat(lines).as_bytes(),
            ]
            .concat();
            assert_eq!(shape(&bad, b',', 2).err(), Some(place + 1));
        }
        let shape = shape(line.repeat(lines).as_bytes(), b',', 2).ok().unwrap();
        assert!(shape.uneven.is_none() && !shape.has_empty);
        for text in [
            "",
            ",",
            "a,b",
            "1,2,3,4,5,6,7,,",
            "012345,,",
            "\u{2c2c},\u{ac2c},,,,,,,",
        ] {
            assert_eq!(count_of(b',', text.as_bytes()), text.matches(',').count());
        }
    }

    #[test]
    fn columns_by_name_in_any_order() {
        for text in [
            "a, B ,\"c d\"\n1,2,x\n\n3,,\"y,z\"\n",
            "\u{feff}a;B;c d\r\n1;2;x\r\n3;;y,z\r\n",
        ] {
            let packed = packed(text.as_bytes());
            let frame = Frame::read(&packed, |name| name != "q").unwrap();
            assert_eq!(frame.rows(), 2);
            assert_eq!(frame.numbers(&number("A")).unwrap(), [1.0, 3.0]);
            assert!(frame.numbers(&number("b")).unwrap()[1].is_nan());
            let mut texts = Vec::new();
            frame
                .texts("C D", |_, text| {
                    texts.push(text.to_owned());
                    Ok(())
                })
                .unwrap();
            assert_eq!(texts, ["x", "y,z"]);
            assert!(!frame.has("q"));
        }
    }

    /// Numbers in text and JSON are parsed exactly as Rust does, to the last bit.
    #[test]
    fn decimals_are_correctly_rounded() {
        let mut state = 1_u64;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state >> 11
        };
        let decimal = |_| format!("{}.{}e{}", random(), random(), random() % 60).replace("e5", "e-2");
        let decimals: Vec<String> = (0..100_000).map(decimal).collect();
        let wanted: Vec<u64> = decimals
            .iter()
            .map(|text| text.parse::<f64>().unwrap().to_bits())
            .collect();
        let csv = format!(
            "a,b\n{}",
            decimals.iter().map(|text| format!("{text},x\n")).collect::<String>()
        );
        let packed = packed(csv.as_bytes());
        let bits = |frame: &Frame| -> Vec<u64> {
            let numbers = frame.numbers(&number("a")).unwrap();
            numbers.into_iter().map(f64::to_bits).collect()
        };
        let numbers = Frame::read_with_numbers(&packed, |name| name == "a", |_| true).unwrap();
        assert!(matches!(numbers.columns[0], Column::Numbers(_)) && bits(&numbers) == wanted);
        let texts = Frame::read(&packed, |name| name == "a").unwrap();
        assert!(matches!(texts.columns[0], Column::Text(_)) && bits(&texts) == wanted);
        let rows: Vec<String> = decimals.iter().map(|text| format!("{{\"a\":{text}}}")).collect();
        let json = Packed {
            bytes: format!("[{}]", rows.join(",")).into_bytes().into(),
            ..packed
        };
        let part = crate::json_text::table(&json, &JsonRows::default()).unwrap();
        let json = Packed {
            part: Some(Arc::new(part)),
            format: Format::Json,
            ..json
        };
        assert!(bits(&Frame::read(&json, |_| true).unwrap()) == wanted);
    }

    #[test]
    fn texts_of_json_keep_their_quotes() {
        let json = br#"[{"a":"6\" x \"b, c\"\nd"}]"#;
        let part = crate::json_text::table(&packed(json), &JsonRows::default()).unwrap();
        let frame = Frame::read(
            &Packed {
                part: Some(Arc::new(part)),
                ..packed(json)
            },
            |_| true,
        )
        .unwrap();
        let mut texts = Vec::new();
        frame
            .texts("a", |_, text| {
                texts.push(text.to_owned());
                Ok(())
            })
            .unwrap();
        assert_eq!(texts, ["6\" x \"b, c\"\nd"]);
    }

    #[test]
    fn errors_name_file_row_and_column() {
        let read = |text: &str| -> Result<Vec<Date>, StageError> {
            let packed = packed(text.as_bytes());
            let frame = Frame::read(&packed, |_| true)?;
            frame.numbers(&number("b"))?;
            frame.dates("d", &["%Y-%m-%d".to_owned()], "")
        };
        let message = |text: &str| read(text).map_err(|err| err.message);
        assert_eq!(message("b,d\n1,2019-01-02\n").unwrap(), [Date(17_898)]);
        assert_eq!(
            message("b,d\n1,2019-01-02\n\nx,2019-01-02\n").unwrap_err(),
            "`t.csv`, row 4, column `b`: `x` is not a number"
        );
        assert_eq!(
            message("b,d\n1,01/02/2019\n").unwrap_err(),
            "`t.csv`, row 2, column `d`: `01/02/2019` is not a date as %Y-%m-%d"
        );
        assert_eq!(
            message("b,d\n1,\n").unwrap_err(),
            "`t.csv`, row 2, column `d`: the date is missing"
        );
        assert_eq!(
            message("b,d\n1,2019-01-02,3\n").unwrap_err(),
            "`t.csv`, row 2: 3 fields under a header of 2"
        );
        assert_eq!(
            message("b,d\n1,2019-01-02\n1").unwrap_err(),
            "`t.csv`, row 3: 1 fields under a header of 2"
        );
        assert_eq!(message("b\n1\n").unwrap_err(), "`t.csv` has no column `d`");
        assert!(message("").unwrap_err().contains("no header"));
        assert!(message("b,d\n").unwrap().is_empty());
    }

    #[test]
    fn a_repeated_column_is_an_error() {
        let read = |text: &str| {
            let packed = packed(text.as_bytes());
            Frame::read(&packed, |name| matches!(name, "b" | "d"))
                .map(drop)
                .map_err(|err| err.message)
        };
        assert_eq!(
            read("b,x,d, B\n1,2,3,4\n").unwrap_err(),
            "`t.csv` has two columns `B`: the columns 1 and 4"
        );
        // Columns that are not read may have any name.
        read("b,,d,,x,x\n1,2,3,4,5,6\n").unwrap();
    }

    #[test]
    fn bad_bytes_are_errors() {
        let bad = packed(b"b,d\n1,2\n\xff,2\n");
        assert!(Frame::read(&bad, |_| true).err().unwrap().message.contains("row 3"));
        let mut parquet = packed(b"PAR1 this is no parquet file PAR1");
        parquet.format = Format::Parquet;
        assert!(header(&parquet).is_err());
        assert!(Frame::read(&parquet, |_| true).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in prop::collection::vec(prop::sample::select(b"ab,;\"\n\r 1.\xc3\xa9-".to_vec()), 0..80)) {
            let packed = packed(&bytes);
            if let Ok(frame) = Frame::read(&packed, |_| true) {
                for name in frame.names.clone() {
                    let _ = frame.numbers(&number("a"));
                    let _ = frame.dates(&name, &["%Y-%m-%d".to_owned()], "");
                }
            }
        }
    }
}
