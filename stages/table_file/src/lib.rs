//! Files as tables: those that vendors and programs write, and those written back to them.
//!
//! [`packing`] opens gzip, zstd and zip files and packs them again, [`text`] scans delimited text and locates
//! faults in it, [`Records`] reads its records one by one, [`json`] reads JSON documents as tables, and
//! [`Container`] reads and writes Parquet and Arrow. The crate `stages-delimited` reads the columns of
//! delimited text with polars.

mod container;
pub mod json;
pub mod packing;
mod records;
pub mod text;

pub use container::{Container, parquet_columns, parquet_names};
pub use records::{Cell, Record, Records, first_record};

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

const DAMAGED: &str = "the file may be damaged or incomplete";

/// Runs a library's reader, whose panics on damaged bytes become faults as its errors do.
///
/// # Errors
/// The reader's.
pub fn guarded<T, E: fmt::Display>(read: impl FnOnce() -> Result<T, E>) -> Result<T, Fault> {
    let damaged = |what: &dyn fmt::Display| Fault::new(format!("cannot be read: {what}"), DAMAGED);
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(result) => result.map_err(|err| damaged(&err)),
        Err(_) => Err(damaged(&"it is not a table that can be read")),
    }
}

/// The reason why a file is not a valid table, phrased to follow the file's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The name of the file within its archive, if it is in one.
    pub entry: Option<String>,
    /// The line of a text file, counted from 1.
    pub row: Option<usize>,
    /// The fault.
    pub what: String,
    /// The remedy.
    pub hint: &'static str,
}

impl Fault {
    fn new(what: impl Into<String>, hint: &'static str) -> Self {
        Self {
            entry: None,
            row: None,
            what: what.into(),
            hint,
        }
    }

    /// The message about the file of this name.
    pub fn of(&self, file: &str) -> String {
        let what = &self.what;
        match (&self.entry, self.row) {
            (Some(entry), _) => format!("`{file}: {entry}` {what}"),
            (None, Some(row)) => format!("`{file}`, row {row}: {what}"),
            (None, None) => format!("`{file}` {what}"),
        }
    }
}
