//! Events as JSON lines: `exec --json`.

use runner_engine::{Pace, Reporter, Stamped};
use std::io::Write;
use std::time::Duration;

/// The shortest time between two progress events of a stage.
const PROGRESS: Duration = Duration::from_secs(1);

/// Writes a line for each event.
pub struct JsonLines<W> {
    out: W,
    lines: String,
    pace: Pace,
    closed: bool,
}

impl<W: Write> JsonLines<W> {
    /// A reporter that writes to `out`.
    pub fn new(out: W) -> Self {
        Self {
            out,
            lines: String::new(),
            pace: Pace::new(PROGRESS),
            closed: false,
        }
    }
}

impl<W: Write> Reporter for JsonLines<W> {
    fn report(&mut self, event: &Stamped) {
        if !self.pace.is_due(&event.event) {
            return;
        }
        self.lines.push_str(&event.to_line());
        self.lines.push('\n');
    }

    fn flush(&mut self) {
        if !self.closed {
            // The reader has closed the pipe: the run continues without it.
            self.closed = self
                .out
                .write_all(self.lines.as_bytes())
                .and_then(|()| self.out.flush())
                .is_err();
        }
        self.lines.clear();
    }
}
