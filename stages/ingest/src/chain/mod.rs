//! `ingest/option_chain`: option quotes from files.

mod config;
mod parity;
mod parse;
mod quotes;
mod rules;
mod stage;
mod table;

pub use config::{ChainColumns, ChainConfig, UnderlyingChoice};
pub use quotes::{FromLast, Quotes};
pub(crate) use rules::{Rules, Seen};
pub use stage::OptionChain;
pub(crate) use table::Chain;
