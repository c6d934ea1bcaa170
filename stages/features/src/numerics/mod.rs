//! Features as incremental computations: each processes one row after another and computes its values from
//! the rows so far, so it cannot look ahead. Cross-sectional features of many symbols are computed from a
//! panel of prices. Nothing here depends on stages or the cache.

mod aggregate;
pub(crate) mod cross_section;
mod feature;
pub mod indicators;
mod kernel;
mod lookback;
mod over_bars;
mod over_splits;
pub(crate) mod panel;
pub mod realised;
mod sliding_window;
pub mod smile;
mod state;
pub mod surface;
pub(crate) mod turbulence;

pub use feature::{Bars, Column, Feature, Rows};
pub use over_splits::{OverSplits, SHARES, Scale};
pub use state::State;
