//! `ingest/corporate_actions`: splits, dividends and changes of symbol, read from files, listed in the
//! pipeline file, or inferred from prices and proposed.

mod config;
mod found;
mod lean;
mod named;
mod ratio;
mod stage;

pub use config::{ActionFormat, CorporateActionsConfig, GivenAction};
pub use stage::CorporateActions;
