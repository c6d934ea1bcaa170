//! The speed of features on this machine.

mod columns;
mod stage;

pub use columns::{Bench, BenchRow, Named, bench, sample_bars, usual_features};
pub use stage::bench_stage;
