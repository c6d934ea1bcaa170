//! The speed of features on this machine.

mod columns;
mod stage;
mod talib;

pub use columns::{BenchRow, Named, bench, bench_finrl, cases, sample_bars};
pub use stage::bench_stage;
