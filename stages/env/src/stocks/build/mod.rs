//! Builds the tables of `env/stocks` from bars, features, rates and corporate actions ahead of training.

mod assemble;
mod finrl;
mod hedge;
mod panel;
mod source;
mod symbol_changes;
mod symbol_features;

pub use assemble::build;
pub use source::{Bar, HedgeBars, PanelSource, SymbolBars, SymbolFeature};
