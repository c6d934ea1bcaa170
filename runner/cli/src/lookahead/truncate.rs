//! Truncation: the data up to a date, and none after it.

use super::document::{Document, Row};

/// The rows that are known by the moment, in their order.
pub fn rows(document: &Document, until: i64) -> Vec<Row> {
    let known = |row: &usize| document.stamps[*row].end <= until;
    let keep = |from| Row {
        from,
        changes: Vec::new(),
    };
    (0..document.stamps.len()).filter(known).map(keep).collect()
}
