//! Features as incremental computations: each reads one row after the other and computes its values from the rows so far, so that it can't look ahead.
//! Nothing here depends on stages or the cache.

mod aggregate;
mod feature;
pub mod indicators;
mod kernel;
mod lookback;
mod over_splits;
pub mod realised;
mod sliding_window;
pub mod smile;
mod state;
pub mod surface;

pub use feature::{Bars, Feature};
pub use over_splits::{OverSplits, SHARES, Scale};
pub use state::State;
