//! Reporters: the terminal, JSON lines, and the metrics of a running training.

mod json;
mod live_line;
mod metrics;
mod stage_progress;
mod tensorboard;
mod terminal;

pub use json::JsonLines;
pub use metrics::Metrics;
pub(crate) use metrics::flatten;
pub use stage_progress::{StageProgress, short};
pub use terminal::{Terminal, Verbosity};
