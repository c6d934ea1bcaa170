//! `ingest/option_chain`: option quotes from files.

mod columns;
mod config;
mod jumps;
mod parity;
mod parse;
mod price_rules;
mod quotes;
mod rules;
mod snapshot_copy;
mod stage;

pub(crate) use columns::Chain;
pub use config::{ChainColumns, ChainConfig, UnderlyingChoice};
pub use quotes::{FromLast, Quotes};
pub(crate) use rules::{Rules, Seen};
pub use stage::OptionChain;
