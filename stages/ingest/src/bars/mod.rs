//! `ingest/bars`: daily bars from files.

mod clean;
mod file_bars;
mod partitions;
mod rows;
mod stage;

pub(crate) use clean::{States, clean};
pub(crate) use rows::{Bar, parse, to_batch};
pub use rows::{closes, reading};
pub use stage::{Bars, BarsConfig};
