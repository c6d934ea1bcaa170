//! Reporters: what shows or stores events. The engine does not know them.

mod json;
mod terminal;

pub use json::JsonLines;
pub use terminal::{Terminal, Verbosity};

use crate::engine::Stamped;

/// Takes note of events.
pub trait Reporter {
    /// Takes note of one. Failures to write are kept by the reporter: they must not stop a run.
    fn report(&mut self, event: &Stamped);

    /// Writes what it kept back: called whenever there is nothing more to report for now.
    fn flush(&mut self) {}
}
