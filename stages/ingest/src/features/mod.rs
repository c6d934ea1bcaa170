//! `ingest/features`: a user's own factors, as of the days on which they were known.

mod as_of;
mod by_contract;
mod config;
mod contract_columns;
mod days;
mod factors;
mod rows;
mod series;
mod stage;
mod whose;

pub use config::{FactorColumns, FeaturesConfig};
pub use contract_columns::ContractColumns;
pub use stage::Features;
