//! The versions of a source: its rows after a date are cut off, have other values, or are other rows.

use super::document::Packed;
use super::moment::Stamp;
use super::perturb::Manner;
use serde::Serialize;
use std::collections::BTreeSet;

/// A manner of changing the data after a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The rows are removed.
    Truncated,
    /// The rows have other values of the same types.
    OtherValues,
    /// Rows are removed and added, symbols end and begin, and values move far.
    OtherRows,
}

impl Change {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::OtherValues => "other values",
            Self::OtherRows => "other rows",
        }
    }
}

/// The properties of a version of the data that its sources depend on.
pub struct About {
    pub change: Change,
    /// The last moment whose data is unchanged.
    pub until: i64,
    /// The symbols that end at that moment.
    pub delisted: BTreeSet<String>,
}

/// A version of a file.
pub struct New {
    pub bytes: Vec<u8>,
    /// The rows after the moment, which the change reaches.
    pub rows: u64,
    /// The rows that it has.
    pub left: usize,
}

/// A version of a file; `None` if it has no rows after the moment.
///
/// # Errors
/// When a table cannot be written.
pub fn version(packed: &Packed, about: &About) -> Result<Option<New>, String> {
    let is_changed = |stamp: &&Stamp| stamp.end > about.until;
    let rows: usize = packed
        .documents()
        .map(|document| document.stamps.iter().filter(is_changed).count())
        .sum();
    if rows == 0 {
        return Ok(None);
    }
    let mut left = 0;
    let bytes = packed.write(|document| {
        let table = match about.change {
            Change::Truncated => document.truncated(about.until)?,
            Change::OtherValues => document.perturbed(Manner::Values, about.until, &about.delisted)?,
            Change::OtherRows => document.perturbed(Manner::Rows, about.until, &about.delisted)?,
        };
        left += table.num_rows();
        Ok(table)
    })?;
    let rows = rows as u64;
    Ok(Some(New { bytes, rows, left }))
}

/// A version of the data.
#[derive(Clone, Copy, Debug)]
pub struct Version {
    /// The date, by its place.
    pub cut: usize,
    pub change: Change,
}
