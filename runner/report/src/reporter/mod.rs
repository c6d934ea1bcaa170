//! Reporters: the terminal, JSON lines, and the metrics of a running training.

mod gauge;
mod json;
mod metrics;
mod tensorboard;
mod terminal;

pub use gauge::{Gauge, short};
pub use json::JsonLines;
pub use metrics::Metrics;
pub use terminal::{Terminal, Verbosity};
