//! Compares the tables of an output before and after the data changed: rows that were known by then must be the same.

use super::change::Change;
use super::moment::Stamp;
use super::outputs::Output;
use super::read::Table;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use std::collections::{BTreeMap, BTreeSet};

/// The share of the known rows that a parameter changes when it is fitted on other data.
const MOST: f64 = 0.7;

/// The circumstances of a comparison.
pub struct Compare<'a> {
    pub until: i64,
    pub change: Change,
    /// True if floats must be the same bits; else up to rounding.
    pub exact: bool,
    /// The dates of the rows of inputs, for tables without dates of their own.
    pub aligned: &'a [Vec<Stamp>],
}

/// The comparison of a table.
#[derive(Debug)]
pub struct Compared {
    /// The table.
    pub name: String,
    pub result: Result<Same, Reason>,
    pub rounded: u64,
}

/// The number of rows that are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Same(pub u64);

/// The reason why a table is not the same.
#[derive(Debug)]
pub enum Reason {
    Moved(Vec<Difference>),
    /// It could not be compared.
    Unchecked(String),
}

/// A column that differs.
#[derive(Debug)]
pub struct Difference {
    pub column: String,
    /// The first row, within the file.
    pub row: usize,
    pub date: Option<Stamp>,
    pub about: String,
    pub was: String,
    pub became: String,
    /// The number of rows that differ.
    pub rows: usize,
    /// True if most of the known rows do.
    pub most: bool,
}

/// A table's rows that were known by the moment.
struct Known {
    batch: RecordBatch,
    /// Their places in the file.
    rows: Vec<usize>,
    stamps: Vec<Stamp>,
}

impl Known {
    fn new(batch: &RecordBatch, stamps: &[Stamp], keep: impl Fn(Stamp) -> bool) -> Self {
        let mask: Vec<bool> = stamps.iter().map(|stamp| keep(*stamp)).collect();
        let rows: Vec<usize> = (0..mask.len()).filter(|&i| mask[i]).collect();
        Self {
            batch: arrow::compute::filter_record_batch(batch, &BooleanArray::from(mask))
                .unwrap_or_else(|_| batch.slice(0, 0)),
            stamps: rows.iter().map(|&i| stamps[i]).collect(),
            rows,
        }
    }

    fn only(&self, keep: impl Fn(Stamp) -> bool) -> Self {
        let mut known = Self::new(&self.batch, &self.stamps, keep);
        known.rows = known.rows.iter().map(|&i| self.rows[i]).collect();
        known
    }
}

impl Compare<'_> {
    /// Compares all tables of an output.
    pub fn outputs(&self, was: &[Output], became: &[Output]) -> Vec<Compared> {
        let by_name = |outputs: &'_ [Output]| -> BTreeMap<String, usize> {
            outputs
                .iter()
                .enumerate()
                .map(|(i, output)| (output.name.clone(), i))
                .collect()
        };
        let (a, b) = (by_name(was), by_name(became));
        let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
        let mut results = Vec::new();
        let mut alone: [Vec<(&String, &Table)>; 2] = Default::default();
        for name in names {
            let unchecked = |reason: &str| Compared {
                name: name.clone(),
                result: Err(Reason::Unchecked(reason.to_owned())),
                rounded: 0,
            };
            let (x, y) = (
                a.get(name).map(|&i| &was[i].table),
                b.get(name).map(|&i| &became[i].table),
            );
            match (x, y) {
                (Some(Ok(x)), Some(Ok(y))) => results.push(self.pair(name, x, y)),
                (Some(Ok(only)), None) if only.stamps.is_some() => alone[0].push((name, only)),
                (None, Some(Ok(only))) if only.stamps.is_some() => alone[1].push((name, only)),
                (Some(Err(reason)), _) | (_, Some(Err(reason))) => results.push(unchecked(reason)),
                _ => results.push(unchecked("is not always written, and has no dates")),
            }
        }
        self.alone(alone, &mut results);
        results
    }

    /// Compares the tables whose names are in one version only, those of one schema as one table: a symbol that first appears after the date
    /// changes the names of partitions, but not the order of the earlier rows.
    fn alone(&self, tables: [Vec<(&String, &Table)>; 2], results: &mut Vec<Compared>) {
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        for (name, table) in tables.iter().flatten() {
            names
                .entry(table.batch.schema().to_string())
                .or_insert_with(|| (*name).clone());
        }
        for (schema, name) in names {
            let whole = |side: usize| {
                let same = || {
                    tables[side]
                        .iter()
                        .map(|(_, table)| table)
                        .filter(|table| table.batch.schema().to_string() == schema)
                };
                let any = tables
                    .iter()
                    .flatten()
                    .find(|(_, table)| table.batch.schema().to_string() == schema)?
                    .1;
                let batch =
                    arrow::compute::concat_batches(&any.batch.schema(), same().map(|table| &table.batch)).ok()?;
                let stamps = same()
                    .flat_map(|table| table.stamps.iter().flatten().copied())
                    .collect();
                Some(Table {
                    name: String::new(),
                    batch,
                    date: any.date,
                    stamps: Some(stamps),
                })
            };
            if let (Some(was), Some(became)) = (whole(0), whole(1)) {
                results.push(self.pair(&name, &was, &became));
            }
        }
    }

    fn pair(&self, name: &str, was: &Table, became: &Table) -> Compared {
        let mut rounded = 0;
        let result = self.tables(was, became, &mut rounded);
        Compared {
            name: name.to_owned(),
            result,
            rounded,
        }
    }

    fn tables(&self, was: &Table, became: &Table, rounded: &mut u64) -> Result<Same, Reason> {
        // A table without rows has the dates of its other version.
        let stamps = |table: &Table, other: &Table| match &table.stamps {
            Some(stamps) => Some(stamps.clone()),
            None if table.batch.num_rows() == 0 && other.stamps.is_some() => Some(Vec::new()),
            None => None,
        };
        if let (Some(a), Some(b)) = (stamps(was, became), stamps(became, was)) {
            let known = |stamp: Stamp| stamp.end <= self.until;
            return self.known(
                Known::new(&was.batch, &a, known),
                Known::new(&became.batch, &b, known),
                was.date,
                rounded,
            );
        }
        if was.batch == became.batch {
            return Ok(Same(was.batch.num_rows().max(1) as u64));
        }
        if was.stamps.is_some() != became.stamps.is_some() {
            return Err(Reason::Unchecked("has dates in one version only".to_owned()));
        }
        self.by_rows(was, became, rounded)
    }

    /// Compares tables without dates whose rows are those of an input.
    fn by_rows(&self, was: &Table, became: &Table, rounded: &mut u64) -> Result<Same, Reason> {
        let undated = || Reason::Unchecked("has no dates, and differs".to_owned());
        let n = was.batch.num_rows();
        let known = |stamps: &[Stamp]| stamps.iter().filter(|stamp| stamp.end <= self.until).count();
        let left = became.batch.num_rows();
        let fits = |stamps: &&Vec<Stamp>| {
            let rows = known(stamps);
            let same_rows = match self.change {
                Change::Truncated => left == rows,
                Change::OtherValues => left == n,
                // The rows up to the date come first, in both versions.
                Change::OtherRows => stamps.is_sorted() && left >= rows,
            };
            stamps.len() == n && n > 1 && rows < n && same_rows
        };
        let stamps = self.aligned.iter().find(fits).ok_or_else(undated)?;
        let rows = known(stamps);
        let was = Known::new(&was.batch, stamps, |stamp| stamp.end <= self.until);
        let dates = was.stamps.clone();
        let became = match self.change {
            Change::Truncated => Known {
                batch: became.batch.clone(),
                rows: (0..rows).collect(),
                stamps: dates,
            },
            Change::OtherValues => Known::new(&became.batch, stamps, |stamp| stamp.end <= self.until),
            Change::OtherRows => Known {
                batch: became.batch.slice(0, rows),
                rows: (0..rows).collect(),
                stamps: dates,
            },
        };
        self.known(was, became, None, rounded)
    }

    /// Compares the known rows.
    fn known(&self, was: Known, became: Known, date: Option<usize>, rounded: &mut u64) -> Result<Same, Reason> {
        if was.rows.len() == became.rows.len() {
            let found = self.cells(&was, &became, rounded);
            if found.is_empty() {
                return Ok(Same(was.rows.len() as u64));
            }
            let in_order = sorted(&was.batch) != sorted(&became.batch);
            return Err(Reason::Moved(if in_order {
                found
            } else {
                self.moved_rows("(order)", &was, &became, date)
            }));
        }
        if self.change == Change::Truncated {
            // The last rows may be written only once later ones have arrived: their values are compared where there are later ones.
            let first_missing = match became.stamps.iter().max() {
                None => was.stamps.iter().min().copied(),
                Some(last) => was.stamps.iter().filter(|stamp| *stamp > last).min().copied(),
            };
            if let Some(missing) = first_missing {
                let before = was.only(|stamp| stamp < missing);
                if before.rows.len() == became.rows.len() {
                    let found = self.cells(&before, &became, rounded);
                    return if found.is_empty() {
                        Ok(Same(before.rows.len() as u64))
                    } else {
                        Err(Reason::Moved(found))
                    };
                }
            }
        }
        Err(Reason::Moved(self.moved_rows("(rows)", &was, &became, date)))
    }

    fn moved_rows(&self, column: &str, was: &Known, became: &Known, date: Option<usize>) -> Vec<Difference> {
        let shared = was.rows.len().min(became.rows.len());
        let differs = |row: &usize| texts(&was.batch, *row, None) != texts(&became.batch, *row, None);
        let row = (0..shared).find(differs).unwrap_or(shared);
        let count = |known: &Known| format!("{} rows", known.rows.len());
        let text = |known: &Known| {
            if row < known.rows.len() {
                texts(&known.batch, row, date)
            } else {
                "none".to_owned()
            }
        };
        let is_order = was.rows.len() == became.rows.len();
        vec![Difference {
            column: column.to_owned(),
            row: was.rows.get(row).copied().unwrap_or(row),
            date: was.stamps.get(row).or_else(|| became.stamps.get(row)).copied(),
            about: about(
                if row < was.rows.len() {
                    &was.batch
                } else {
                    &became.batch
                },
                row,
                None,
            ),
            was: if is_order { text(was) } else { count(was) },
            became: if is_order { text(became) } else { count(became) },
            rows: if is_order {
                (0..shared).filter(differs).count()
            } else {
                was.rows.len().abs_diff(became.rows.len())
            },
            most: false,
        }]
    }

    /// The columns that differ in as many rows.
    fn cells(&self, was: &Known, became: &Known, rounded: &mut u64) -> Vec<Difference> {
        let (a, b) = (was.batch.schema(), became.batch.schema());
        let same_names = a
            .fields()
            .iter()
            .map(|field| field.name())
            .eq(b.fields().iter().map(|field| field.name()));
        let mut found = Vec::new();
        let mut difference =
            |column: &str, rows: Vec<usize>, of: usize, x: &dyn Fn(usize) -> String, y: &dyn Fn(usize) -> String| {
                if let Some(&row) = rows.first() {
                    found.push(Difference {
                        column: column.to_owned(),
                        row: was.rows[row],
                        date: was.stamps.get(row).copied(),
                        about: about(&was.batch, row, Some(of)),
                        was: x(row),
                        became: y(row),
                        rows: rows.len(),
                        most: rows.len() as f64 >= MOST * was.rows.len() as f64,
                    });
                }
            };
        for (i, field) in a.fields().iter().enumerate() {
            let x = was.batch.column(i);
            let y = match same_names {
                true => Some(became.batch.column(i)),
                false => became.batch.column_by_name(field.name()),
            };
            let Some(y) = y else {
                // A column of a symbol that begins later has no values yet.
                let rows = (0..x.len()).filter(|&row| !is_empty(x, row)).collect();
                difference(field.name(), rows, i, &|row| cell(x, row), &|_| "no column".to_owned());
                continue;
            };
            let rows = self.differing(x, y, rounded);
            difference(field.name(), rows, i, &|row| cell(x, row), &|row| cell(y, row));
        }
        for (i, field) in b.fields().iter().enumerate() {
            if !same_names && a.column_with_name(field.name()).is_none() {
                let y = became.batch.column(i);
                let rows = (0..y.len()).filter(|&row| !is_empty(y, row)).collect();
                difference(field.name(), rows, usize::MAX, &|_| "no column".to_owned(), &|row| {
                    cell(y, row)
                });
            }
        }
        found
    }

    /// The rows in which two columns of one length differ.
    fn differing(&self, a: &ArrayRef, b: &ArrayRef, rounded: &mut u64) -> Vec<usize> {
        if a.to_data() == b.to_data() {
            return Vec::new();
        }
        let same_type = a.data_type() == b.data_type();
        let scale = if self.exact {
            0.0
        } else {
            (0..a.len())
                .filter_map(|row| number(a, row))
                .map(f64::abs)
                .filter(|x| x.is_finite())
                .fold(0.0, f64::max)
        };
        // Single precision has seven digits.
        let digits = if matches!(a.data_type(), DataType::Float32) {
            1e-5
        } else {
            1e-9
        };
        let differs = |row: &usize| {
            let row = *row;
            if same_type && a.slice(row, 1).to_data() == b.slice(row, 1).to_data() {
                return false;
            }
            if self.exact && same_type {
                return true;
            }
            if is_empty(a, row) && is_empty(b, row) {
                return false;
            }
            match (number(a, row), number(b, row)) {
                (Some(x), Some(y)) => {
                    let same = x.to_bits() == y.to_bits() || x == y;
                    let close = (x - y).abs() <= digits * x.abs().max(y.abs()) + 1e-4 * digits * scale;
                    if !same && close {
                        *rounded += 1;
                    }
                    !(same || close)
                }
                _ => same_type || cell(a, row) != cell(b, row),
            }
        };
        let mut differs = differs;
        (0..a.len()).filter(|row| differs(row)).collect()
    }
}

/// The value of a cell as a number.
fn number(column: &ArrayRef, row: usize) -> Option<f64> {
    if column.is_null(row) {
        return None;
    }
    match column.data_type() {
        DataType::Float64 => Some(column.as_primitive::<Float64Type>().value(row)),
        DataType::Float32 => Some(f64::from(column.as_primitive::<Float32Type>().value(row))),
        ty if ty.is_integer() => cell_text(column, row).parse().ok(),
        DataType::Utf8 => column.as_string::<i32>().value(row).trim().parse().ok(),
        _ => None,
    }
}

/// True for a missing value.
fn is_empty(column: &ArrayRef, row: usize) -> bool {
    column.is_null(row)
        || number(column, row).is_some_and(f64::is_nan)
        || matches!(column.data_type(), DataType::Utf8 if column.as_string::<i32>().value(row).trim().is_empty())
}

/// The rows of a table as text, sorted.
fn sorted(batch: &RecordBatch) -> Vec<String> {
    let mut rows: Vec<String> = (0..batch.num_rows()).map(|row| texts(batch, row, None)).collect();
    rows.sort_unstable();
    rows
}

/// The cells of a row.
fn texts(batch: &RecordBatch, row: usize, but: Option<usize>) -> String {
    let columns = batch.columns().iter().enumerate().filter(|(i, _)| Some(*i) != but);
    shortened(
        columns
            .map(|(_, column)| cell_text(column, row))
            .collect::<Vec<_>>()
            .join(","),
        2000,
    )
}

fn cell_text(column: &ArrayRef, row: usize) -> String {
    let options = FormatOptions::default().with_null("null");
    let formatter = ArrayFormatter::try_new(column.as_ref(), &options).ok();
    formatter
        .and_then(|formatter| formatter.value(row).try_to_string().ok())
        .unwrap_or_else(|| "?".to_owned())
}

fn cell(column: &ArrayRef, row: usize) -> String {
    shortened(cell_text(column, row), 40)
}

fn shortened(text: String, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most - 1).chain(['…']).collect(),
        false => text,
    }
}

/// The cells of a row that identify it.
fn about(batch: &RecordBatch, row: usize, column: Option<usize>) -> String {
    const NAMES: [&str; 9] = [
        "symbol", "tic", "ticker", "expiry", "root", "strike", "call", "strategy", "contract",
    ];
    if row >= batch.num_rows() {
        return String::new();
    }
    let schema = batch.schema();
    let fields = schema.fields().iter().enumerate();
    let cells = fields
        .filter(|(i, field)| Some(*i) != column && NAMES.contains(&field.name().as_str()))
        .map(
            |(i, field)| match (field.data_type(), cell(batch.column(i), row).as_str()) {
                (DataType::Boolean, "true") => "call".to_owned(),
                (DataType::Boolean, _) => "put".to_owned(),
                (_, text) => text.to_owned(),
            },
        );
    cells.collect::<Vec<_>>().join(" ")
}
