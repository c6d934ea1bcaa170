//! Technical indicators: TA-Lib's definitions with their seeds, warm-up and order of operations, or those of
//! stockstats. The cost of a bar does not depend on the period (but for the commodity channel index, whose
//! mean absolute deviation goes over its window), and each goes on from the state after the partition before.

mod average;
mod defined;
mod directional;
mod indicator;
mod momentum;
mod statistic;
mod stockstats;
mod volume;

pub use defined::Defined;
pub use indicator::{Average, Bollinger, Convention, Indicator, Oscillator, Sar, T3, Two};
