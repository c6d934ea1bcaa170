//! A vendor's table as columns. Every value that cannot be read is an error that names file, row and column.
//!
//! Rows are counted as a text editor or spreadsheet does: the header of a CSV file is row 1. A Parquet file
//! has no header row, so that its first row is 1.

mod column;
mod decimal;
mod stated;
#[cfg(test)]
mod tests;
mod values;

use self::column::Column;
pub(crate) use self::stated::Stated;
use crate::notes::Notes;
use crate::unpack::{Format, Numbering, Packed, Part};
use crate::value::shown;
use crate::whose::{Partitions, is_symbol, is_usual, whole_date};
use arrow_array::{Array as _, ArrayRef, StringArray};
use bytes::Bytes;
use datasets::layout::{Condition, normal};
use stages_core::StageError;
use stages_table_file::text::{fields, first_line, line_of, not_text, separator, text_of};
use stages_table_file::{Fault, parquet_columns, parquet_names};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex};

/// The column names in a table's header, unchanged.
pub fn header(packed: &Packed) -> Result<Vec<String>, StageError> {
    if let Some(part) = &packed.part {
        return Ok(part.header.clone());
    }
    match packed.format {
        Format::Json => Err(StageError::new(format!(
            "`{}` is a JSON document, and not a table",
            packed.place
        ))
        .hint("`layout: { json: { rows: … }, … }` says where its rows are")),
        Format::Csv => {
            let line = first_line(text_of(&packed.bytes));
            let line = std::str::from_utf8(line).map_err(|_| of_fault(packed, not_text(&packed.bytes, 1)))?;
            StageError::new(format!("`{}` has no header", packed.place))
                .hint("the first line must name the columns")
                .when(line.trim().is_empty())?;
            Ok(fields(line, separator(line)))
        }
        Format::Parquet => guarded(&packed.place, || parquet_names(&packed.bytes)),
    }
}

/// Refuses a header with two wanted columns of the same name, since only one of them could be read.
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
            .hint("rename or remove one of them in the file (names are compared without case and blanks), or number \
                them by `number_repeated: true` in the layout: the second is `NAME#2`"));
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
    /// The header, and the indices in it of the columns.
    header: (Vec<String>, Vec<usize>),
    /// The lines of the rows in the file, where they are not consecutive.
    lines: Option<Arc<Vec<usize>>>,
    /// Statements about numbers and dates.
    stated: Stated,
    notes: Notes,
    /// The signs of currencies beside the numbers of columns that were read.
    signs: Mutex<BTreeMap<String, &'static str>>,
}

impl Frame {
    /// Reads the columns whose normalised names ([`normal`]) are wanted.
    pub fn read(packed: &Packed, wanted: impl Fn(&str) -> bool) -> Result<Self, StageError> {
        Self::read_with_numbers(packed, wanted, |_| false)
    }

    /// Reads the columns whose normalised names ([`normal`]) are wanted. Columns for which `is_number` holds
    /// are parsed as numbers at once if all their values are plain numbers.
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
                let columns = stages_delimited::read(&text, &header, &indices, &numbers)
                    .map_err(|fault| of_fault(packed, fault))?;
                let rows = columns.iter().take(1).flatten().map(|part| part.len()).sum();
                (Some(text), (columns, rows))
            }
            (None, Format::Parquet | Format::Json) => {
                let read = || parquet_columns(&packed.bytes, &indices);
                (None, guarded(&packed.place, read)?)
            }
        };
        StageError::new(format!(
            "`{}` cannot be read: its header and its columns differ",
            packed.place
        ))
        .when(columns.len() != names.len())?;
        let mut frame = Self {
            place: packed.place.clone(),
            text,
            numbering: packed.numbering,
            names,
            all_rows: rows,
            columns: columns.into_iter().map(Column).collect(),
            kept: None,
            missing: Vec::new(),
            header: (header.clone(), indices),
            lines: packed.lines.clone(),
            stated: Stated::default(),
            notes: packed.notes.clone(),
            signs: Mutex::default(),
        };
        let partitions = Partitions::of(&packed.path);
        frame.check_partitions(&partitions)?;
        for (name, value) in partitions.columns(&header) {
            if wanted(&normal(&name)) {
                let values = StringArray::from_iter_values(std::iter::repeat_n(&value, rows));
                frame.names.push(normal(&name));
                frame.columns.push(Column(vec![Arc::new(values)]));
            }
        }
        Ok(frame)
    }

    /// Refuses rows whose symbol or date contradicts that of the file's directories.
    fn check_partitions(&self, partitions: &Partitions) -> Result<(), StageError> {
        let contradicts = |row: usize, name: &str, text: &str, stated: String| {
            let problem = self.error(row, name, &format!("`{}`, and the folder says {stated}", shown(text)));
            problem.hint("correct the one that is wrong: rename the folder, or move the row")
        };
        let (symbol, date) = (partitions.symbol(), partitions.date());
        for name in &self.names {
            if let Some((key, symbol)) = symbol.filter(|_| is_symbol(name)) {
                let wanted = symbol.to_lowercase();
                self.texts(name, |row, text| {
                    let own = text.to_lowercase();
                    let same = own.is_empty() || own.contains(&wanted) || wanted.contains(&own);
                    match same {
                        true => Ok(()),
                        false => Err(contradicts(row, name, text, format!("`{key}={symbol}`"))),
                    }
                })?;
            }
            if let Some(parts) = date.filter(|_| is_usual("date", name)) {
                self.texts(name, |row, text| match whole_date(text) {
                    Some(date) if !parts.may_be(date, has_time(text)) => {
                        Err(contradicts(row, name, text, format!("`{}`", partitions.text())))
                    }
                    _ => Ok(()),
                })?;
            }
        }
        Ok(())
    }

    /// Treats the given values as missing ones too.
    #[must_use]
    pub fn with_missing(mut self, missing: &[String]) -> Self {
        self.missing = missing.to_vec();
        self
    }

    /// States how numbers and dates are written.
    #[must_use]
    pub(crate) fn with_stated(mut self, stated: Stated) -> Self {
        self.stated = stated;
        self
    }

    /// Selects the rows that satisfy a condition.
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

    /// The number of rows that are not selected.
    pub fn left_out(&self) -> usize {
        self.all_rows - self.rows()
    }

    /// Joins columns of a second table: `names` are its columns, with whether each is wanted, and `find`
    /// gives its row for a key in the column `on`. Returns the number of rows with a match.
    pub fn join<'t>(
        &mut self,
        on: &str,
        names: impl Iterator<Item = (String, bool)>,
        find: impl Fn(&str) -> Option<&'t [String]>,
    ) -> Result<usize, StageError> {
        let rows = self.map(on, |key| Ok(find(key)))?;
        for (i, (name, _)) in names.enumerate().filter(|(_, (_, is_wanted))| *is_wanted) {
            let values = rows.iter().map(|row| row.map(|row| row[i].as_str()));
            self.names.push(name);
            self.columns
                .push(Column(vec![Arc::new(values.collect::<StringArray>())]));
        }
        Ok(rows.iter().flatten().count())
    }

    /// Returns whether the table has the column.
    pub fn has(&self, theirs: &str) -> bool {
        self.names.contains(&normal(theirs))
    }

    /// The normalised names of the columns.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns whether a column stores numbers in single precision, which are read as their shortest
    /// decimals.
    pub fn is_single_precision(&self, theirs: &str) -> bool {
        matches!(self.column(theirs), Ok(column) if column.is_single_precision())
    }

    /// Passes every symbol in a column to `take`, as [`Frame::texts`] does: a whole number that is stored
    /// with decimals is a code.
    pub(crate) fn symbols(
        &self,
        theirs: &str,
        mut take: impl FnMut(usize, &str) -> Result<(), StageError>,
    ) -> Result<(), StageError> {
        let is_float = self.column(theirs)?.is_float();
        self.texts(theirs, |row, text| match text.strip_suffix(".0") {
            Some(code) if is_float => take(row, code),
            _ => take(row, text),
        })
    }

    /// Returns whether a column stores numbers, which have no leading zeros.
    pub(crate) fn is_stored_number(&self, theirs: &str) -> bool {
        self.text.is_none() && self.column(theirs).is_ok_and(|column| column.data_type().is_numeric())
    }

    /// The times of day of a column of instants in microseconds after midnight UTC, if it stores instants,
    /// and any has one other than midnight.
    pub(crate) fn stored_times(&self, theirs: &str) -> Option<Vec<i64>> {
        let times = self.column(theirs).ok()?.times_of_day()?;
        times.iter().any(|time| *time != 0).then(|| self.select(times))
    }

    /// The first value of a column, whether its row is selected or not.
    pub(crate) fn first_text(&self, theirs: &str) -> Option<String> {
        self.column(theirs).ok()?.first_text()
    }

    /// Returns whether a column stores days or instants.
    pub(crate) fn is_stored_date(&self, theirs: &str) -> bool {
        self.column(theirs).is_ok_and(|column| column.data_type().is_temporal())
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
        let mapped = self.lines.as_ref().and_then(|lines| lines.get(row).copied());
        let row = match (&self.text, self.numbering) {
            _ if let Some(line) = mapped => line,
            (Some(text), Numbering::Lines(before)) => line_of(text, row).saturating_add_signed(before),
            (_, Numbering::RowsAfter(before)) => before + row + 1,
            _ => row + 1,
        };
        StageError::new(format!("`{}`, row {row}, column `{theirs}`: {what}", self.place))
    }

    /// Passes every value as trimmed text to `take`, empty where missing.
    pub fn texts(
        &self,
        theirs: &str,
        mut take: impl FnMut(usize, &str) -> Result<(), StageError>,
    ) -> Result<(), StageError> {
        let mut kept = self
            .kept
            .as_ref()
            .map(|kept| kept.iter().copied().enumerate().peekable());
        let trimmed = |at: usize, text: Option<&str>| {
            let row = match &mut kept {
                Some(kept) => kept.next_if(|(_, kept)| *kept == at).map(|(row, _)| row),
                None => Some(at),
            };
            row.map_or(Ok(()), |row| take(row, text.unwrap_or_default().trim()))
        };
        self.column(theirs)?.texts(trimmed)
    }

    /// The values that `make` gives for the trimmed texts of a column, which are empty where missing.
    pub fn map<T>(
        &self,
        theirs: &str,
        mut make: impl FnMut(&str) -> Result<T, String>,
    ) -> Result<Vec<T>, StageError> {
        let mut values = Vec::with_capacity(self.rows());
        self.texts(theirs, |row, text| {
            values.push(make(text).map_err(|what| self.error(row, theirs, &what))?);
            Ok(())
        })?;
        Ok(values)
    }
}

/// Returns whether a date has a time other than midnight after it.
fn has_time(date: &str) -> bool {
    date.bytes().skip(10).any(|byte| (b'1'..=b'9').contains(&byte))
}

/// Reads with a library, whose panics on damaged bytes become errors.
pub(crate) fn guarded<T, E: fmt::Display>(
    place: &str,
    read: impl FnOnce() -> Result<T, E>,
) -> Result<T, StageError> {
    stages_table_file::guarded(read).map_err(|fault| StageError::of_fault(place, &fault))
}

/// The error for a fault in a text, whose rows are counted from the first line of the file.
fn of_fault(packed: &Packed, mut fault: Fault) -> StageError {
    if let Numbering::Lines(before) = packed.numbering {
        fault.row = fault.row.map(|row| row.saturating_add_signed(before));
    }
    StageError::of_fault(&packed.place, &fault)
}

/// The columns of a part of a file at the given indices of the header, and the number of rows.
fn stored(part: &Part, indices: &[usize]) -> (Vec<Vec<ArrayRef>>, usize) {
    let place = |index: &usize| part.columns.iter().position(|column| column == index);
    let columns = indices.iter().filter_map(place);
    let columns = columns.map(|at| vec![part.batch.column(at).clone()]);
    (columns.collect(), part.batch.num_rows())
}
