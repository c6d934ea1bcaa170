//! `ingest/features`: a user's own factors, as of the days on which they were known.

mod as_of;
mod config;
mod rows;
mod stage;

pub use config::FeaturesConfig;
pub use stage::Features;
