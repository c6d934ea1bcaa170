//! `ingest/rates`: interest rates from files.

mod stage;
mod zero;

pub use stage::{RateColumns, Rates, RatesConfig};
pub(crate) use stage::{Point, batch, clean};
pub use zero::zero_rates;
