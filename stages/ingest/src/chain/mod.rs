//! `ingest/option_chain`: option quotes from files.

mod classes;
mod columns;
mod config;
mod edge;
mod file_rows;
mod file_terms;
mod intraday;
mod jumps;
mod parity;
mod parse;
mod partition;
mod partitions;
mod price_rules;
mod quotes;
mod rules;
mod snapshot_copy;
mod stage;
mod whole;

pub(crate) use columns::Chain;
pub(crate) use parse::parse;
pub use config::{ChainConfig, UnderlyingChoice};
pub use intraday::Snapshot;
pub use quotes::{FromLast, Quotes};
pub(crate) use rules::{Rules, Seen};
pub use stage::OptionChain;
