//! `ingest/rates`: interest rates from files.

mod missing;
mod percent;
mod stage;
mod zero;

pub(crate) use stage::Rates;
pub(crate) use stage::{Point, batch, clean};
