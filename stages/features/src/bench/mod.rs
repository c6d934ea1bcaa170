//! The speed of features on this machine.

mod columns;
mod stage;

pub use columns::{BenchRow, Named, bench, bench_finrl, cases, sample_bars};
pub use stage::bench_stage;
