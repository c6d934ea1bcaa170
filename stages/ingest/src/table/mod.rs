//! `ingest/table`: any table of a user's own, by symbol and instant.
//!
//! A file is parsed once (`file`): its rows are kept in the store, cut by period. A partition is made of the
//! cuts of its period (`partitions`), so that a day that is appended, to a file or as a file of its own,
//! costs the parsing of its file and the partition that it belongs to.

mod config;
mod file;
mod partitions;
mod rows;
mod stage;

pub use config::TableConfig;
pub use stage::Table;
