//! `ingest/features`: a user's own factors, as of the days on which they were known.

mod as_of;
mod columns;
mod config;
mod days;
mod factors;
mod rows;
mod stage;

pub use columns::FactorColumns;
pub use config::FeaturesConfig;
pub use stage::Features;
