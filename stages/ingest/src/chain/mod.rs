//! `ingest/option_chain`: option quotes from files.

mod columns;
mod config;
mod parity;
mod parse;
mod quotes;
mod rules;
mod stage;

pub(crate) use columns::Chain;
pub use config::{ChainConfig, UnderlyingChoice};
pub use quotes::{FromLast, Quotes};
pub(crate) use rules::{Rules, Seen};
pub use stage::OptionChain;
