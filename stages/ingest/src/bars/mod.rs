//! `ingest/bars`: daily bars from files.

mod clean;
mod config;
mod copies;
mod days;
mod file_bars;
mod markets;
mod partitions;
mod rows;
mod stage;
mod stated;
mod whose;

pub use clean::closes;
pub(crate) use clean::{States, clean};
pub use config::BarsConfig;
pub use rows::reading;
pub(crate) use rows::{Bar, parse, to_batch};
pub use stage::Bars;
