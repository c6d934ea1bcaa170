//! `ingest/rates`: interest rates from files.

mod stage;
mod zero;

pub use stage::{RateColumns, Rates, RatesConfig};
pub use zero::zero_rates;
