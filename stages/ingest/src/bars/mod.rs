//! `ingest/bars`: daily bars from files.

mod rows;
mod stage;

pub(crate) use rows::{Bar, clean, parse, to_batch};
pub use rows::{closes, reading};
pub use stage::{Bars, BarsConfig};
