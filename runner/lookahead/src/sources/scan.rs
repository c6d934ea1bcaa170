//! The dates and symbols of a source.

use crate::column::Column;
use crate::document::{Document, Packed};
use crate::moment::Stamp;
use std::collections::BTreeSet;

/// The dates and symbols of a source.
#[derive(Default)]
pub(crate) struct Scan {
    /// The distinct dates of the source's rows.
    pub stamps: BTreeSet<Stamp>,
    /// The date of each row, in the order of the rows, by table.
    pub rows: Vec<Vec<Stamp>>,
    pub symbols: BTreeSet<String>,
    /// The dates that deserve a test of their own, each with the reason.
    pub notable: BTreeSet<(Stamp, &'static str)>,
}

impl Scan {
    /// Adds the tables of a file.
    pub(crate) fn add(&mut self, packed: &Packed) {
        for document in packed.documents() {
            let mut last = None;
            for &stamp in &document.stamps {
                if last != Some(stamp) {
                    self.stamps.insert(stamp);
                    last = Some(stamp);
                }
            }
            self.rows.push(document.stamps.clone());
            self.add_symbols(document);
            for column in &document.columns {
                self.add_notable(document, column);
            }
        }
    }

    /// Adds the symbols, and the dates at which they begin and end.
    fn add_symbols(&mut self, document: &Document) {
        if document.symbols.is_none() {
            return;
        }
        let (codes, symbols) = document.symbols();
        let mut spans: Vec<Option<(Stamp, Stamp)>> = vec![None; symbols.len()];
        for (&code, &stamp) in codes.iter().zip(&document.stamps) {
            let span = &mut spans[code as usize];
            *span = Some(span.map_or((stamp, stamp), |(from, to)| (from.min(stamp), to.max(stamp))));
        }
        let (first, last) = (document.stamps.iter().min(), document.stamps.iter().max());
        for (symbol, span) in symbols.into_iter().zip(spans) {
            let Some((from, to)) = span else { continue };
            self.symbols.insert(symbol);
            self.notable
                .extend((Some(&from) != first).then_some((from, "a symbol begins")));
            self.notable
                .extend((Some(&to) != last).then_some((to, "a symbol ends")));
        }
    }

    /// Adds the dates of missing and of extreme values.
    fn add_notable(&mut self, document: &Document, column: &Column) {
        let missing: Vec<usize> = (0..document.rows()).filter(|&row| column.is_missing(row)).collect();
        // A column that is almost entirely empty says nothing about a date.
        if missing.len() * 4 <= document.rows() * 3 {
            let stamps = missing.iter().map(|&row| (document.stamps[row], "a value is missing"));
            self.notable.extend(stamps);
        }
        let Column::Numbers(values, _) = column else { return };
        let present = || (0..values.len()).filter(|&row| values[row].is_finite());
        let most = present().reduce(|best, row| if values[row] > values[best] { row } else { best });
        let least = present().reduce(|best, row| if values[row] < values[best] { row } else { best });
        if let (Some(most), Some(least)) = (most, least)
            && values[most] > values[least]
        {
            let stamps = [most, least].map(|row| (document.stamps[row], "an extreme value"));
            self.notable.extend(stamps);
        }
    }
}
