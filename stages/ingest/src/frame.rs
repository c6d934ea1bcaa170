//! A vendor's table as columns, read by polars; every value that cannot be read is an error with file, row and column.
//!
//! Rows are counted as a text editor or spreadsheet does: the header of a CSV file is row 1. A Parquet file has no header
//! row, so that its first row is 1.

use crate::unpack::{Format, Packed};
use crate::value::{self, Dates};
use datasets::Date;
use datasets::layout::{Mapping, Text, Unit, normal};
use memchr::{memchr, memchr_iter};
use polars::prelude::{
    Column, CsvParseOptions, CsvReadOptions, DataFrame, DataType, Field, ParquetReader, Schema, SerReader,
};
use polars_arrow::array::Array as _;
use rayon::prelude::*;
use stages_core::StageError;
use std::borrow::Cow;
use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The separators that text tables are tried with.
const SEPARATORS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// The names in a table's header, as they stand there.
///
/// # Errors
/// When there is none to read.
pub fn header(packed: &Packed) -> Result<Vec<String>, StageError> {
    match packed.format {
        Format::Csv => {
            let line = first_line(text_of(&packed.bytes));
            let line = std::str::from_utf8(line).map_err(|_| not_text(&packed.place, 1))?;
            if line.trim().is_empty() {
                return Err(StageError::new(format!("`{}` has no header", packed.place))
                    .hint("the first line must name the columns"));
            }
            Ok(fields(line, separator(line)))
        }
        Format::Parquet => guarded(&packed.place, || {
            let schema = ParquetReader::new(Cursor::new(&packed.bytes)).schema()?;
            Ok(schema.iter_names().map(ToString::to_string).collect())
        }),
    }
}

/// Some columns of a vendor's table.
pub struct Frame<'a> {
    place: &'a str,
    /// The text that rows are counted in; none for Parquet.
    text: Option<&'a [u8]>,
    names: Vec<String>,
    columns: Vec<Column>,
    rows: usize,
}

impl<'a> Frame<'a> {
    /// Reads the columns whose names are wanted, compared as [`normal`] does.
    ///
    /// # Errors
    /// When the table is damaged or a row has not as many fields as the header.
    pub fn read(packed: &'a Packed, wanted: impl Fn(&str) -> bool) -> Result<Self, StageError> {
        Self::read_with_numbers(packed, wanted, |_| false)
    }

    /// As [`Frame::read`], of columns that hold numbers in some places: these are read as numbers at once where each of their values is a plain one.
    ///
    /// # Errors
    /// Likewise.
    pub fn read_with_numbers(
        packed: &'a Packed,
        wanted: impl Fn(&str) -> bool,
        is_number: impl Fn(&str) -> bool,
    ) -> Result<Self, StageError> {
        let header = header(packed)?;
        let mut names: Vec<String> = Vec::new();
        let mut indices = Vec::new();
        let mut numbers = Vec::new();
        for (i, name) in header.iter().enumerate() {
            let name = normal(name);
            if wanted(&name) && !names.contains(&name) {
                if is_number(&name) {
                    numbers.push(i);
                }
                names.push(name);
                indices.push(i);
            }
        }
        let (text, frame) = match packed.format {
            Format::Csv => {
                let text = text_of(&packed.bytes);
                (Some(text), csv(packed, text, &header, &indices, &numbers)?)
            }
            Format::Parquet => {
                let frame = guarded(&packed.place, || {
                    ParquetReader::new(Cursor::new(&packed.bytes))
                        .with_projection(Some(indices.clone()))
                        .set_rechunk(false)
                        .finish()
                })?;
                (None, frame)
            }
        };
        let columns = frame.columns().to_vec();
        if columns.len() != names.len() {
            return Err(StageError::new(format!(
                "`{}` cannot be read: its header and its columns differ",
                packed.place
            )));
        }
        Ok(Self {
            place: &packed.place,
            text,
            names,
            rows: frame.height(),
            columns,
        })
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whether it has the column.
    pub fn has(&self, theirs: &str) -> bool {
        self.names.contains(&normal(theirs))
    }

    fn column(&self, theirs: &str) -> Result<&Column, StageError> {
        let name = normal(theirs);
        let i = self.names.iter().position(|n| *n == name);
        i.map(|i| &self.columns[i])
            .ok_or_else(|| StageError::new(format!("`{}` has no column `{theirs}`", self.place)))
    }

    /// An error about one value.
    pub fn error(&self, row: usize, theirs: &str, what: &str) -> StageError {
        let row = match self.text {
            Some(text) => line_of(text, row),
            None => row + 1,
        };
        StageError::new(format!("`{}`, row {row}, column `{theirs}`: {what}", self.place))
    }

    fn cast(&self, theirs: &str, ty: &DataType) -> Result<Column, StageError> {
        let column = self.column(theirs)?;
        column.cast(ty).map_err(|err| {
            StageError::new(format!(
                "`{}`, column `{theirs}`: values of type {} cannot be used here: {err}",
                self.place,
                column.dtype()
            ))
        })
    }

    /// Numbers in our unit, NaN where they are missing.
    ///
    /// # Errors
    /// Where a value is not a number.
    pub fn numbers(&self, mapping: &Mapping) -> Result<Vec<f64>, StageError> {
        let mut values = self.raw_numbers(&mapping.theirs)?;
        match &mapping.unit {
            Unit::AsIs => {}
            Unit::Times(factor) => values.iter_mut().for_each(|value| *value *= factor),
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
        let column = self.column(theirs)?;
        if matches!(column.dtype(), DataType::String) {
            let texts = column.str().map_err(|err| self.polars(&err))?;
            return texts
                .iter()
                .enumerate()
                .map(|(row, text)| {
                    text.map_or(Ok(f64::NAN), value::number)
                        .map_err(|what| self.error(row, theirs, &what))
                })
                .collect();
        }
        if !matches!(column.dtype(), DataType::Null) && !column.dtype().is_primitive_numeric() {
            return Err(self.wrong_type(theirs, "numbers"));
        }
        let column = self.cast(theirs, &DataType::Float64)?;
        let numbers = column.f64().map_err(|err| self.polars(&err))?;
        let mut values = Vec::with_capacity(self.rows);
        for part in numbers.downcast_iter() {
            if part.null_count() == 0 {
                values.extend_from_slice(part.values());
            } else {
                values.extend(part.iter().map(|number| number.copied().unwrap_or(f64::NAN)));
            }
        }
        if count_of_infinite(&values) > 0
            && let Some(row) = values.iter().position(|value| value.is_infinite())
        {
            return Err(self.error(row, theirs, "the number is infinite"));
        }
        Ok(values)
    }

    /// Dates; none may be missing.
    ///
    /// # Errors
    /// Where a value is not a date in one of the formats.
    pub fn dates(&self, theirs: &str, formats: &[Text]) -> Result<Vec<Date>, StageError> {
        let column = self.column(theirs)?;
        match column.dtype() {
            DataType::Date => {}
            DataType::Datetime(_, zone) => {
                if zone
                    .as_ref()
                    .is_some_and(|zone| !matches!(zone.as_str(), "UTC" | "Etc/UTC" | "+00:00"))
                {
                    return Err(self
                        .wrong_type(theirs, "dates")
                        .hint("write it as a date without a time zone"));
                }
            }
            _ => {
                let mut dates = Dates::new(formats);
                let mut out = Vec::with_capacity(self.rows);
                self.texts(theirs, |row, text| {
                    out.push(dates.parse(text).map_err(|what| self.error(row, theirs, &what))?);
                    Ok(())
                })?;
                return Ok(out);
            }
        }
        let days = self.cast(theirs, &DataType::Date)?;
        let days = days.cast(&DataType::Int32).map_err(|err| self.polars(&err))?;
        let days = days.i32().map_err(|err| self.polars(&err))?;
        days.iter()
            .enumerate()
            .map(|(row, day)| {
                day.map(Date)
                    .ok_or_else(|| self.error(row, theirs, "the date is missing"))
            })
            .collect()
    }

    /// Hands every value as text to `take`, without blanks around it, empty where it is missing.
    ///
    /// # Errors
    /// The first that `take` gives.
    pub fn texts(
        &self,
        theirs: &str,
        mut take: impl FnMut(usize, &str) -> Result<(), StageError>,
    ) -> Result<(), StageError> {
        let column = self.cast(theirs, &DataType::String)?;
        let texts = column.str().map_err(|err| self.polars(&err))?;
        for (row, text) in texts.iter().enumerate() {
            take(row, text.unwrap_or_default().trim())?;
        }
        Ok(())
    }

    fn wrong_type(&self, theirs: &str, wanted: &str) -> StageError {
        let ty = self
            .column(theirs)
            .map_or_else(|_| String::new(), |column| column.dtype().to_string());
        StageError::new(format!(
            "`{}`, column `{theirs}`: holds {ty} and not {wanted}",
            self.place
        ))
    }

    fn polars(&self, err: &polars::error::PolarsError) -> StageError {
        StageError::new(format!("cannot read `{}`: {err}", self.place))
    }
}

/// Runs what may panic inside polars on damaged bytes.
fn guarded<T>(place: &str, read: impl FnOnce() -> polars::error::PolarsResult<T>) -> Result<T, StageError> {
    let damaged = |what: String| {
        StageError::new(format!("cannot read `{place}`: {what}")).hint("the file may be damaged or incomplete")
    };
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(result) => result.map_err(|err| damaged(err.to_string())),
        Err(_) => Err(damaged("it is not a table that can be read".to_owned())),
    }
}

fn csv(
    packed: &Packed,
    text: &[u8],
    header: &[String],
    indices: &[usize],
    numbers: &[usize],
) -> Result<DataFrame, StageError> {
    // `header` has read the line as text.
    let separator = separator(&String::from_utf8_lossy(first_line(text)));
    let Shape { uneven, has_empty } =
        shape(text, separator, header.len()).map_err(|row| not_text(&packed.place, row))?;
    if let Some((row, found)) = uneven {
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
        let empty = indices
            .iter()
            .map(|&i| Column::new_empty(header[i].as_str().into(), &DataType::String));
        return guarded(&packed.place, || DataFrame::new(0, empty.collect()));
    }
    let text = if has_empty {
        without_empty_lines(text)
    } else {
        Cow::Borrowed(text)
    };
    let read = |schema: Option<Schema>| {
        CsvReadOptions::default()
            .with_has_header(true)
            // Every column as text: what cannot be read is then an error of ours, with its place.
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
        // A value that is no plain number is looked at as text, whatever comes of it.
        let plain = guarded(&packed.place, || read(Some(fields.collect())));
        if let Ok(frame) = plain
            && frame.columns().iter().all(is_finite)
        {
            return Ok(frame);
        }
    }
    guarded(&packed.place, || read(None))
}

/// Whether a column has no infinite number.
fn is_finite(column: &Column) -> bool {
    column.f64().map_or(true, |numbers| {
        numbers
            .downcast_iter()
            .all(|part| count_of_infinite(part.values().as_slice()) == 0)
    })
}

/// Counted without a branch: the loop becomes vector instructions.
fn count_of_infinite(values: &[f64]) -> u64 {
    values
        .iter()
        .fold(0, |count, value| count + u64::from(value.is_infinite()))
}

/// What a text is as a table.
struct Shape {
    /// The first record that has not as many fields as the header, and how many.
    uneven: Option<(usize, usize)>,
    /// Whether a line may be empty.
    has_empty: bool,
}

/// Looks over a text, in parts side by side; the row (from 1) where it is none.
fn shape(text: &[u8], separator: u8, header: usize) -> Result<Shape, usize> {
    let quoted = memchr(b'"', text).is_some();
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let least = PART.min(rest.len());
        let end = memchr(b'\n', &rest[least..]).map_or(rest.len(), |end| least + end + 1);
        let (part, later) = rest.split_at(end);
        parts.push(part);
        rest = later;
    }
    let look = |part: &[u8]| match std::str::from_utf8(part) {
        Err(err) => Err(1 + lines_in(&part[..err.valid_up_to()])),
        Ok(_) if quoted => Ok(Lines::default()),
        Ok(_) => Ok(Lines::of(part, separator, header)),
    };
    let looked: Vec<Result<Lines, usize>> = parts.par_iter().map(|part| look(part)).collect();
    let mut uneven = None;
    let mut has_empty = false;
    let mut before = 0;
    for (part, lines) in parts.into_iter().zip(looked) {
        // Only where something is wrong do the lines of the parts before count.
        match lines {
            Ok(lines) => {
                has_empty |= lines.has_empty;
                if uneven.is_none()
                    && let Some((line, fields)) = lines.uneven
                {
                    uneven = Some((lines_in(&text[..before]) + line, fields));
                }
            }
            Err(row) => return Err(lines_in(&text[..before]) + row),
        }
        before += part.len();
    }
    if quoted {
        uneven = uneven_row(text, separator, header);
    }
    Ok(Shape {
        uneven,
        has_empty: quoted || (has_empty && has_empty_line(text)),
    })
}

/// How many bytes of a text are looked at in one piece, at the least.
const PART: usize = 1 << 20;

fn lines_in(text: &[u8]) -> usize {
    text.iter().filter(|b| **b == b'\n').count()
}

/// What lines without quotes are as rows of a table.
#[derive(Default)]
struct Lines {
    /// The first that has not as many fields as the header, from 1, and how many.
    uneven: Option<(usize, usize)>,
    has_empty: bool,
}

impl Lines {
    fn of(text: &[u8], separator: u8, header: usize) -> Self {
        let mut has_empty = false;
        let mut start = 0;
        // The end of the text ends a line, too.
        for (i, end) in memchr_iter(b'\n', text).chain([text.len()]).enumerate() {
            let line = &text[start..end];
            start = end + 1;
            if matches!(line, b"" | b"\r") {
                has_empty |= end < text.len();
            } else {
                let fields = 1 + count_of(separator, line);
                if fields != header {
                    let uneven = Some((i + 1, fields));
                    return Self { uneven, has_empty };
                }
            }
        }
        Self {
            uneven: None,
            has_empty,
        }
    }
}

/// How often a byte stands in a text: eight at a time, for lines are too short for more.
fn count_of(byte: u8, text: &[u8]) -> usize {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let all = u64::from(byte) * 0x0101_0101_0101_0101;
    let (words, rest) = text.as_chunks::<8>();
    let in_words = words.iter().fold(0, |count, word| {
        let other = u64::from_le_bytes(*word) ^ all;
        // The high bit of each byte that is another one.
        let others = (((other & LOW) + LOW) | other) & !LOW;
        count + 8 - others.count_ones() as usize
    });
    in_words + rest.iter().filter(|b| **b == byte).count()
}

/// The text without its empty lines, which polars takes for rows.
fn without_empty_lines(text: &[u8]) -> Cow<'_, [u8]> {
    if !has_empty_line(text) {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut quoted = false;
    for line in text.split_inclusive(|b| *b == b'\n') {
        if quoted || !begins_empty(line) {
            out.extend_from_slice(line);
        }
        quoted ^= line.iter().filter(|b| **b == b'"').count() % 2 == 1;
    }
    Cow::Owned(out)
}

fn begins_empty(rest: &[u8]) -> bool {
    rest.starts_with(b"\n") || rest.starts_with(b"\r\n")
}

/// Whether an empty line follows a line.
fn has_empty_line(text: &[u8]) -> bool {
    (0..text.len()).any(|i| text[i] == b'\n' && begins_empty(&text[i + 1..]))
}

/// A text without its byte-order mark.
fn text_of(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

fn first_line(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|b| *b == b'\n').unwrap_or(text.len());
    &text[..end]
}

fn not_text(place: &str, row: usize) -> StageError {
    StageError::new(format!("`{place}`, row {row}: the text is not UTF-8"))
        .hint("CSV (UTF-8, perhaps gzip or zip) and Parquet files are read")
}

/// The separator that a header line has most of.
fn separator(line: &str) -> u8 {
    let count = |s: &u8| line.bytes().filter(|b| b == s).count();
    let mut best = SEPARATORS[0];
    for s in SEPARATORS {
        if count(&s) > count(&best) {
            best = s;
        }
    }
    best
}

/// The fields of a line, without their quotes.
fn fields(line: &str, separator: u8) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut quoted = false;
    for c in line.trim_end_matches('\r').chars() {
        if c == '"' {
            quoted = !quoted;
        } else if c == char::from(separator) && !quoted {
            out.push(String::new());
        } else if let Some(field) = out.last_mut() {
            field.push(c);
        }
    }
    out
}

/// Walks over the records of a text: where each begins (its line from 1) and how many fields it has, empty lines left out.
fn records(text: &[u8], separator: u8, mut take: impl FnMut(usize, usize) -> bool) {
    let (mut line, mut start, mut fields, mut quoted, mut empty) = (1, 1, 1, false, true);
    for &b in text {
        match b {
            b'"' => {
                quoted = !quoted;
                empty = false;
            }
            b'\n' => {
                line += 1;
                if !quoted {
                    if !empty && !take(start, fields) {
                        return;
                    }
                    (start, fields, empty) = (line, 1, true);
                }
            }
            b if b == separator && !quoted => {
                fields += 1;
                empty = false;
            }
            b'\r' => {}
            _ => empty = false,
        }
    }
    if !empty {
        take(start, fields);
    }
}

/// The first record that has not as many fields as the header, and how many.
fn uneven_row(text: &[u8], separator: u8, header: usize) -> Option<(usize, usize)> {
    let mut found = None;
    records(text, separator, |line, fields| {
        if fields != header {
            found = Some((line, fields));
        }
        found.is_none()
    });
    found
}

/// The line on which data row `row` (from 0) begins.
fn line_of(text: &[u8], row: usize) -> usize {
    let (mut seen, mut at) = (0, row + 2);
    records(text, 0, |line, _| {
        if seen == row + 1 {
            at = line;
            return false;
        }
        seen += 1;
        true
    });
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packed(bytes: &[u8]) -> Packed {
        Packed {
            place: "t.csv".to_owned(),
            stem: "t".to_owned(),
            bytes: bytes.to_vec(),
            format: Format::Csv,
        }
    }

    fn number(theirs: &'static str) -> Mapping {
        Mapping {
            ours: Cow::Borrowed("x"),
            theirs: Cow::Borrowed(theirs),
            unit: Unit::AsIs,
            tenor_years: None,
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

    #[test]
    fn errors_name_file_row_and_column() {
        let read = |text: &str| -> Result<Vec<Date>, StageError> {
            let packed = packed(text.as_bytes());
            let frame = Frame::read(&packed, |_| true)?;
            frame.numbers(&number("b"))?;
            frame.dates("d", &[Cow::Borrowed("%Y-%m-%d")])
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
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(prop::sample::select(b"ab,;\"\n\r 1.\xc3\xa9-".to_vec()), 0..80)) {
            let packed = packed(&bytes);
            if let Ok(frame) = Frame::read(&packed, |_| true) {
                for name in frame.names.clone() {
                    let _ = frame.numbers(&number("a"));
                    let _ = frame.dates(&name, &[Cow::Borrowed("%Y-%m-%d")]);
                }
            }
        }
    }
}
