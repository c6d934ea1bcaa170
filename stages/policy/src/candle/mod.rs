//! Networks over candle's own operations and autodiff.

mod model;
mod parameters;
mod transformer;

pub use model::CandleModel;
