//! Events as JSON lines: `exec --json`.

use runner_engine::{Pace, Reporter, Stamped, text};
use std::io::{Error, ErrorKind, Write};
use std::time::Duration;

/// The shortest time between two progress events of a stage.
const PROGRESS: Duration = Duration::from_secs(1);

/// Writes a line for each event, with control characters of foreign text as escapes.
pub struct JsonLines<W> {
    out: W,
    lines: String,
    pace: Pace,
    closed: bool,
    failed: Option<Error>,
}

impl<W: Write> JsonLines<W> {
    /// A reporter that writes to `out`.
    pub fn new(out: W) -> Self {
        Self {
            out,
            lines: String::new(),
            pace: Pace::new(PROGRESS),
            closed: false,
            failed: None,
        }
    }

    /// Checks that every event was written, unless the reader closed the pipe.
    ///
    /// # Errors
    /// The first write error.
    pub fn finish(self) -> Result<(), Error> {
        self.failed.map_or(Ok(()), Err)
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
            let lines = text::visible(&self.lines);
            let written = self.out.write_all(lines.as_bytes()).and_then(|()| self.out.flush());
            // The run continues without its reader, and without a full disk.
            if let Err(err) = written {
                self.closed = true;
                self.failed = (err.kind() != ErrorKind::BrokenPipe).then_some(err);
            }
        }
        self.lines.clear();
    }
}
