//! `ingest/table`: a user's own table, by symbol and instant.
//!
//! Each file is parsed once (`file`) and its rows are kept in the store, cut by period. A partition is made
//! from the cuts of its period (`partitions`). Appending a day, to a file or as a file of its own, thus costs
//! only the parsing of that file and the making of one partition.

mod config;
mod file;
mod partitions;
mod rows;
mod stage;

pub use config::TableConfig;
pub use stage::Table;
