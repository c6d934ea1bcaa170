//! `ingest/option_chain`: option quotes from files.
//!
//! Each file becomes cuts of neighbouring days in the store, with a summary (`file_rows`). The facts of the
//! whole chain follow from the summaries (`whole`, `classes`). Partitions are made from their cuts
//! (`partition`) in order, each starting from the state at the end of the previous one (`partitions`,
//! `edge`).

mod classes;
mod columns;
mod config;
mod edge;
mod file_rows;
mod file_terms;
mod intraday;
mod join;
mod jumps;
mod ladder;
mod parity;
mod parse;
mod partition;
mod partitions;
mod price_rules;
mod quotes;
mod result;
mod rules;
mod seen;
mod snapshot_copy;
mod snapshots_a_day;
mod stage;
mod whole;

pub(crate) use columns::Chain;
pub use config::{ChainConfig, UnderlyingChoice};
pub use intraday::Snapshot;
pub(crate) use parse::parse;
pub use quotes::{FromLast, Quotes};
pub(crate) use rules::{Rules, Styles};
pub(crate) use seen::Seen;
pub use stage::OptionChain;
