//! `ingest/corporate_actions`: splits, dividends and changes of symbol, from files, from the pipeline file,
//! or found in prices and proposed.

mod config;
mod found;
mod lean;
mod named;
mod ratio;
mod stage;

pub use config::{ActionFormat, CorporateActionsConfig, GivenAction};
pub use stage::CorporateActions;
