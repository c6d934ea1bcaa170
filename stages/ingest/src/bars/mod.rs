//! `ingest/bars`: daily bars from files.

mod stage;
mod table;

pub use stage::{Bars, BarsConfig};
pub(crate) use table::{Bar, clean, parse, to_batch};
pub use table::{BarColumns, closes, reading};
