//! The rows of a table that were known by a moment.

use super::text;
use super::{Compare, Difference, Reason, Same};
use crate::change::Change;
use crate::moment::Stamp;
use arrow_array::{BooleanArray, RecordBatch};

/// The rows of a table that were known by the moment.
pub(super) struct Known {
    pub batch: RecordBatch,
    /// The indices of the rows in the file.
    pub rows: Vec<usize>,
    pub stamps: Vec<Stamp>,
}

impl Known {
    pub(super) fn new(batch: &RecordBatch, stamps: &[Stamp], keep: impl Fn(Stamp) -> bool) -> Self {
        let mask: Vec<bool> = stamps.iter().map(|stamp| keep(*stamp)).collect();
        let rows: Vec<usize> = (0..mask.len()).filter(|&i| mask[i]).collect();
        // Most tables are sorted by their dates.
        let is_prefix = rows.last().is_none_or(|last| last + 1 == rows.len());
        let batch = match is_prefix {
            true => batch.slice(0, rows.len()),
            false => arrow_select::filter::filter_record_batch(batch, &BooleanArray::from(mask))
                .unwrap_or_else(|_| batch.slice(0, 0)),
        };
        Self {
            batch,
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
    /// Compares the known rows.
    pub(super) fn known(
        &self,
        was: Known,
        became: Known,
        date: Option<usize>,
        rounded: &mut u64,
    ) -> Result<Same, Reason> {
        if was.rows.len() == became.rows.len() {
            let found = self.cells(&was, &became, rounded);
            if found.is_empty() {
                return Ok(Same(was.rows.len() as u64));
            }
            let in_order = text::sorted(&was.batch) != text::sorted(&became.batch);
            return Err(Reason::Moved(if in_order {
                found
            } else {
                self.moved_rows("(order)", &was, &became, date)
            }));
        }
        if self.change == Change::Truncated {
            // The last rows may be written only once later rows have arrived: their values are compared only
            // if there are later rows.
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
        let (a, b) = (text::hashes(&was.batch), text::hashes(&became.batch));
        let is_order = a.len() == b.len();
        let shared = a.len().min(b.len());
        let differing: Vec<usize> = (0..shared).filter(|&row| a[row] != b[row]).collect();
        let row = differing.first().copied().unwrap_or(shared);
        let has_it = if row < a.len() { was } else { became };
        let text = |known: &Known| match is_order {
            true if row < known.rows.len() => text::texts(&known.batch, row, date),
            true => "none".to_owned(),
            false => format!("{} rows", known.rows.len()),
        };
        vec![Difference {
            column: column.to_owned(),
            row: was.rows.get(row).copied().unwrap_or(row),
            date: has_it.stamps.get(row).copied(),
            about: text::about(&has_it.batch, row, None),
            was: text(was),
            became: text(became),
            rows: if is_order {
                differing.len()
            } else {
                a.len().abs_diff(b.len())
            },
            most: false,
        }]
    }
}
