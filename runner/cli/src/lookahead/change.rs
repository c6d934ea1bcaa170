//! The versions of a source: its rows after a date are cut off, have other values, or are other rows.

use super::document::{Document, Row};
use super::{perturb, truncate};
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

/// The properties of a source that its versions depend on.
pub struct About {
    /// The last moment whose data is unchanged.
    pub until: i64,
    /// The symbols that end at that moment.
    pub delisted: BTreeSet<String>,
    /// True if symbols and dates may be added: not in a data set, whose partitions are named after them.
    pub may_grow: bool,
}

/// The rows of a version of a table; `None` if it has no rows after the moment.
pub fn rows(document: &Document, change: Change, about: &About) -> Option<Vec<Row>> {
    if document.stamps.iter().all(|stamp| stamp.end <= about.until) {
        return None;
    }
    Some(match change {
        Change::Truncated => truncate::rows(document, about.until),
        Change::OtherValues => perturb::values(document, about.until),
        Change::OtherRows => perturb::rows(document, about),
    })
}
