//! The perturbed rows of a table, and how its format writes them.

use super::{Body, Document, columns, text};
use arrow_array::RecordBatch;
use std::collections::BTreeMap;

/// The perturbed rows of a table, whatever the date after which they stand.
#[derive(Default)]
pub struct Variant {
    /// The old row of each.
    pub from: Vec<usize>,
    /// The number of rows that stand where the old ones do, in their order; the others come after all.
    pub in_place: usize,
    /// The replaced columns, each with a cell for each of the rows.
    pub columns: BTreeMap<usize, New>,
}

/// Replaced cells of a column.
#[derive(Clone, Debug)]
pub enum New {
    /// Numbers; one that is not a number where the old one stays. Integers stay integers.
    Numbers(Vec<f64>),
    Flags(Vec<Option<bool>>),
    Days(Vec<Option<i32>>),
    /// Codes of texts of the column, [`super::super::column::MISSING`] where the old one stays.
    Codes(Vec<u32>),
    Texts(Vec<Option<String>>),
}

/// Perturbed rows as they are written.
pub enum Rows {
    None,
    Lines(Vec<String>),
    Batch(RecordBatch),
    Bytes(Vec<u8>),
}

impl Document {
    /// The rows as this table's format writes them.
    pub(crate) fn render(&self, variant: &Variant) -> Result<Rows, String> {
        Ok(match &self.body {
            Body::Csv(csv) => Rows::Lines(text::csv_lines(self, csv, variant)),
            Body::Json(rows) => Rows::Lines(text::json_lines(self, rows, variant)),
            Body::Columns(_, batch) => Rows::Batch(columns::batch(self, batch, variant)?),
            Body::Array(array) => Rows::Bytes(array.rows(&variant.from, |column, place| {
                let new = variant.columns.get(&column)?;
                self.element(column, new, place)
            })),
        })
    }

    /// The bytes of a table of old and perturbed rows, each with 0 or 1 and its place among these.
    pub(crate) fn assemble(&self, picks: &[(usize, usize)], new: &Rows) -> Result<Vec<u8>, String> {
        let changed = |place: usize| match new {
            Rows::Lines(lines) => lines[place].as_str(),
            _ => "",
        };
        Ok(match &self.body {
            Body::Csv(csv) => csv.write(
                picks
                    .iter()
                    .map(|&(new, row)| if new == 0 { csv.line(row) } else { changed(row) }),
            ),
            Body::Json(rows) => rows.write(
                picks
                    .iter()
                    .map(|&(new, row)| if new == 0 { rows.line(row) } else { changed(row) }),
            ),
            Body::Columns(container, old) => {
                let new = if let Rows::Batch(new) = new {
                    new
                } else {
                    &old.slice(0, 0)
                };
                container.write(&columns::interleaved(old, new, picks)?)?
            }
            Body::Array(array) => {
                let new: &[u8] = if let Rows::Bytes(bytes) = new { bytes } else { &[] };
                array.write(new, picks)
            }
        })
    }

    /// A replaced element of an array; `None` where the old one stays.
    fn element(&self, column: usize, new: &New, place: usize) -> Option<Element> {
        match new {
            New::Numbers(values) => {
                Some(Element::Number(values[place])).filter(|_| values[place].is_finite())
            }
            New::Flags(flags) => flags[place].map(Element::Flag),
            New::Codes(_) | New::Texts(_) => {
                text::chosen(self, column, new, place).map(|text| Element::Text(text.to_owned()))
            }
            New::Days(_) => None,
        }
    }
}

/// An element of an array.
pub enum Element {
    Number(f64),
    Flag(bool),
    Text(String),
}
