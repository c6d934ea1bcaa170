//! Files as tables: what vendors and programs write, and what is written back to them.
//!
//! [`packing`] opens gzip and zip and packs again, [`text`] scans text with separators and finds the place of
//! what is wrong in it, [`Records`] reads its records one by one, and [`Container`] reads and writes Parquet
//! and Arrow.

mod container;
pub mod packing;
mod records;
pub mod text;

pub use container::Container;
pub use records::{Cell, Record, Records, first_record};

/// The reason why a file is no table, to be read after its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The file of an archive.
    pub entry: Option<String>,
    /// The line of a text, from 1.
    pub row: Option<usize>,
    /// What is wrong.
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

    /// The message for the file of this name.
    pub fn of(&self, file: &str) -> String {
        let what = &self.what;
        match (&self.entry, self.row) {
            (Some(entry), _) => format!("`{file}: {entry}` {what}"),
            (None, Some(row)) => format!("`{file}`, row {row}: {what}"),
            (None, None) => format!("`{file}` {what}"),
        }
    }
}
