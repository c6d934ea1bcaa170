//! Technical, volatility and option-surface features: the numerics ([`numerics`]), the stages that run them over data sets ([`stage`]), and their
//! benchmark ([`bench()`]).

mod bench;
pub mod numerics;
pub mod stage;

pub use bench::{Bench, BenchRow, Named, bench, sample_bars, usual_features};
pub use stage::kinds;
