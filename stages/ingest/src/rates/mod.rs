//! `ingest/rates`: interest rates from files.

mod stage;
mod zero;

pub(crate) use stage::{Point, batch, clean};
pub use stage::{RateColumns, Rates, RatesConfig};
pub use zero::zero_rates;
