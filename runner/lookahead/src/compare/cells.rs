//! The cells in which two versions of the same rows differ.

use super::known::Known;
use super::text::{about, cell};
use super::{Compare, Difference};
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_cast::cast;
use arrow_ord::cmp::distinct;
use arrow_schema::DataType;

/// The share of the known rows that a parameter changes when it is fitted on other data.
const MOST: f64 = 0.7;

impl Compare<'_> {
    /// The columns that differ in as many rows.
    pub(super) fn cells(&self, was: &Known, became: &Known, rounded: &mut u64) -> Vec<Difference> {
        let (a, b) = (was.batch.schema(), became.batch.schema());
        let same_names = a
            .fields()
            .iter()
            .map(|field| field.name())
            .eq(b.fields().iter().map(|field| field.name()));
        let mut found = Vec::new();
        let mut difference = |column: &str,
                              rows: Vec<usize>,
                              of: usize,
                              x: &dyn Fn(usize) -> String,
                              y: &dyn Fn(usize) -> String| {
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
                let values = Numbers::new(x);
                let rows = (0..x.len()).filter(|&row| !values.is_empty(row)).collect();
                difference(field.name(), rows, i, &|row| cell(x, row), &|_| "no column".to_owned());
                continue;
            };
            let rows = self.differing(x, y, rounded);
            difference(field.name(), rows, i, &|row| cell(x, row), &|row| cell(y, row));
        }
        for (i, field) in b.fields().iter().enumerate() {
            if !same_names && a.column_with_name(field.name()).is_none() {
                let y = became.batch.column(i);
                let values = Numbers::new(y);
                let rows = (0..y.len()).filter(|&row| !values.is_empty(row)).collect();
                difference(field.name(), rows, usize::MAX, &|_| "no column".to_owned(), &|row| {
                    cell(y, row)
                });
            }
        }
        found
    }

    /// The rows in which two columns of one length differ.
    fn differing(&self, a: &ArrayRef, b: &ArrayRef, rounded: &mut u64) -> Vec<usize> {
        let candidates = candidates(a, b);
        if candidates.is_empty() || self.exact && a.data_type() == b.data_type() {
            return candidates;
        }
        let same_type = a.data_type() == b.data_type();
        let (x, y) = (Numbers::new(a), Numbers::new(b));
        // Single precision has seven digits.
        let digits = if matches!(a.data_type(), DataType::Float32) {
            1e-5
        } else {
            1e-9
        };
        let least = 1e-4 * digits * if self.exact { 0.0 } else { x.scale() };
        let differs = |row: &usize| {
            let row = *row;
            if x.is_empty(row) && y.is_empty(row) {
                return false;
            }
            match (x.value(row), y.value(row)) {
                (Some(x), Some(y)) => {
                    let same = x == y;
                    let close = !self.exact && (x - y).abs() <= digits * x.abs().max(y.abs()) + least;
                    *rounded += u64::from(!same && close);
                    !(same || close)
                }
                _ => same_type || cell(a, row) != cell(b, row),
            }
        };
        let mut differs = differs;
        candidates.into_iter().filter(|row| differs(row)).collect()
    }
}

/// The rows in which two columns are not the same bits.
fn candidates(a: &ArrayRef, b: &ArrayRef) -> Vec<usize> {
    if a.data_type() != b.data_type() {
        return (0..a.len()).collect();
    }
    match distinct(a, b) {
        Ok(differs) if differs.true_count() == 0 => Vec::new(),
        Ok(differs) => set(&differs),
        // Nested columns have no such kernel.
        Err(_) => {
            let same = |row: usize| a.slice(row, 1).to_data() == b.slice(row, 1).to_data();
            (0..a.len()).filter(|&row| !same(row)).collect()
        }
    }
}

fn set(rows: &BooleanArray) -> Vec<usize> {
    rows.values().set_indices().collect()
}

/// The cells of a column as numbers.
enum Numbers<'a> {
    Typed(ArrayRef),
    Texts(Vec<Option<&'a str>>),
    None(&'a ArrayRef),
}

impl<'a> Numbers<'a> {
    fn new(column: &'a ArrayRef) -> Self {
        let ty = column.data_type();
        if ty.is_numeric()
            && let Ok(values) = cast(column, &DataType::Float64)
        {
            return Self::Typed(values);
        }
        crate::moment::texts(column.as_ref()).map_or(Self::None(column), Self::Texts)
    }

    fn value(&self, row: usize) -> Option<f64> {
        match self {
            Self::Typed(values) => values
                .is_valid(row)
                .then(|| values.as_primitive::<Float64Type>().value(row)),
            Self::Texts(texts) => texts[row]?.trim().parse().ok(),
            Self::None(_) => None,
        }
    }

    /// True for a missing value.
    fn is_empty(&self, row: usize) -> bool {
        match self {
            Self::Typed(_) => self.value(row).is_none_or(f64::is_nan),
            Self::Texts(texts) => texts[row].is_none_or(|text| {
                let text = text.trim();
                text.is_empty() || text.parse().is_ok_and(f64::is_nan)
            }),
            Self::None(column) => column.is_null(row),
        }
    }

    /// The largest value.
    fn scale(&self) -> f64 {
        let rows = match self {
            Self::Typed(values) => values.len(),
            Self::Texts(texts) => texts.len(),
            Self::None(_) => 0,
        };
        let values = (0..rows).filter_map(|row| self.value(row)).map(f64::abs);
        values.filter(|value| value.is_finite()).fold(0.0, f64::max)
    }
}
