//! Technical indicators: TA-Lib's definitions with their seeds, warm-up and order of operations, or those of stockstats. Each costs the same for
//! every bar whatever its period (but the commodity channel index, whose mean absolute deviation goes over its window), and goes on from where the
//! partition before left it.

mod average;
mod defined;
mod directional;
mod indicator;
mod momentum;
mod statistic;
mod stockstats;
mod volume;

pub use defined::Defined;
pub use indicator::{Average, Bollinger, Column, Convention, Indicator, Oscillator, Sar, T3, Two};
