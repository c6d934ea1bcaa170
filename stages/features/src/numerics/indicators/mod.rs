//! Technical indicators: TA-Lib's definitions with their seeds, warm-up and order of operations, or those of
//! stockstats. The cost per bar does not depend on the period, except for the commodity channel index, whose
//! mean absolute deviation visits its whole window. Each indicator continues from the state at the end of the
//! previous partition.

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
