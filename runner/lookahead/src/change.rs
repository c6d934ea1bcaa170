//! The manners of changing data: rows after a date are cut off, have other values, or are other rows.

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
    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::OtherValues => "other values",
            Self::OtherRows => "other rows",
        }
    }
}

/// The properties of a version of the data that its sources depend on.
pub(crate) struct About {
    pub change: Change,
    /// The last moment whose data is unchanged.
    pub until: i64,
    /// The symbols that end at that moment.
    pub delisted: BTreeSet<String>,
}

/// A version of the data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version {
    /// The date, by its place.
    pub cut: usize,
    pub change: Change,
}
