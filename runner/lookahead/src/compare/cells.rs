//! The cells in which two versions of the same rows differ.

use super::known::Known;
use super::text::{about, cell};
use super::{Compare, Difference};
use crate::moment;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_ord::cmp::distinct;
use arrow_schema::{DataType, SchemaRef};

/// The minimum share of the known rows that a parameter changes when it is fitted on other data.
const MOST: f64 = 0.7;

impl Compare<'_> {
    /// The columns that differ between two versions with the same number of known rows.
    pub(super) fn cells(&self, was: &Known, became: &Known, rounded: &mut u64) -> Vec<Difference> {
        let (a, b) = (was.batch.schema(), became.batch.schema());
        let names = |schema: &SchemaRef| -> Vec<String> {
            schema.fields().iter().map(|field| field.name().clone()).collect()
        };
        let (a, b) = (names(&a), names(&b));
        let place = |name: &String| b.iter().position(|other| other == name);
        // Columns with duplicate names can be paired only by position.
        let mut pairs: Vec<(&String, Option<usize>, Option<usize>)> = a
            .iter()
            .enumerate()
            .map(|(i, name)| (name, Some(i), if a == b { Some(i) } else { place(name) }))
            .collect();
        pairs.extend(
            b.iter()
                .enumerate()
                .filter(|(_, name)| !a.contains(name))
                .map(|(i, name)| (name, None, Some(i))),
        );
        let mut found = Vec::new();
        for (name, x, y) in pairs {
            let columns = (x.map(|i| was.batch.column(i)), y.map(|i| became.batch.column(i)));
            let rows: Vec<usize> = match columns {
                (Some(x), Some(y)) => self.differing(x, y, rounded),
                // A column of a symbol that begins later has no values yet.
                (Some(only), None) | (None, Some(only)) => {
                    let cells = numbers(only);
                    (0..cells.len()).filter(|&row| cells[row] != Cell::Empty).collect()
                }
                (None, None) => Vec::new(),
            };
            let Some(&row) = rows.first() else { continue };
            let text =
                |column: Option<&ArrayRef>| column.map_or("no column".to_owned(), |column| cell(column, row));
            found.push(Difference {
                column: name.clone(),
                row: was.rows[row],
                date: was.stamps.get(row).copied(),
                about: about(&was.batch, row, x),
                was: text(columns.0),
                became: text(columns.1),
                rows: rows.len(),
                most: rows.len() as f64 >= MOST * was.rows.len() as f64,
            });
        }
        found
    }

    /// The rows in which two columns of equal length differ.
    fn differing(&self, a: &ArrayRef, b: &ArrayRef, rounded: &mut u64) -> Vec<usize> {
        let candidates = candidates(a, b);
        let same_type = a.data_type() == b.data_type();
        if candidates.is_empty() || self.exact && same_type {
            return candidates;
        }
        let (x, y) = (numbers(a), numbers(b));
        // Single precision has about seven significant digits.
        let digits = if *a.data_type() == DataType::Float32 {
            1e-5
        } else {
            1e-9
        };
        let sizes = x.iter().filter_map(|cell| {
            if let Cell::Number(x) = cell {
                Some(x.abs())
            } else {
                None
            }
        });
        let scale = sizes.filter(|size| size.is_finite()).fold(0.0, f64::max);
        let mut differs = |row: usize| match (x[row], y[row]) {
            (Cell::Empty, Cell::Empty) => false,
            (Cell::Number(x), Cell::Number(y)) => {
                let close = !self.exact && (x - y).abs() <= digits * (x.abs().max(y.abs()) + 1e-4 * scale);
                *rounded += u64::from(x != y && close);
                x != y && !close
            }
            _ => same_type || cell(a, row) != cell(b, row),
        };
        candidates.into_iter().filter(|&row| differs(row)).collect()
    }
}

/// The rows in which two columns are not bitwise equal.
fn candidates(a: &ArrayRef, b: &ArrayRef) -> Vec<usize> {
    if a.data_type() != b.data_type() {
        return (0..a.len()).collect();
    }
    match distinct(a, b) {
        Ok(differs) => differs.values().set_indices().collect(),
        // The `distinct` kernel does not support nested columns.
        Err(_) => {
            let same = |row: usize| a.slice(row, 1).to_data() == b.slice(row, 1).to_data();
            (0..a.len()).filter(|&row| !same(row)).collect()
        }
    }
}

/// The value of a cell, if it is a number.
#[derive(Clone, Copy, PartialEq)]
enum Cell {
    /// The cell is missing, or not a number.
    Empty,
    Number(f64),
    Other,
}

fn numbers(column: &ArrayRef) -> Vec<Cell> {
    let number = |value: f64| {
        if value.is_nan() {
            Cell::Empty
        } else {
            Cell::Number(value)
        }
    };
    let floats = column
        .data_type()
        .is_numeric()
        .then(|| cast(column, &DataType::Float64).ok())
        .flatten();
    if let Some(floats) = floats {
        return floats
            .as_primitive::<Float64Type>()
            .iter()
            .map(|value| value.map_or(Cell::Empty, number))
            .collect();
    }
    match moment::texts(column) {
        Some(texts) => {
            let text = |text: Option<&str>| match text.map(str::trim) {
                None | Some("") => Cell::Empty,
                Some(text) => text.parse().map_or(Cell::Other, number),
            };
            texts.into_iter().map(text).collect()
        }
        None => (0..column.len())
            .map(|row| if column.is_null(row) { Cell::Empty } else { Cell::Other })
            .collect(),
    }
}
