//! Builds the tables of `env/options` from market data ahead of training, part by part, each part a memo.

mod assemble;
mod chain;
mod contract_features;
mod histories;
mod market_source;
mod part_store;
mod selection;
mod settlements;
mod snapshots;

pub use assemble::{build, build_worlds};
pub(super) use chain::{Chain, Kept, part_snapshots};
pub use market_source::{ContractColumns, ContractFeatures, Day, MarketSource, Quote};
pub use part_store::{InMemory, PartStore, Piece};
pub use settlements::Settlements;
pub(super) use snapshots::PartSnapshots;
