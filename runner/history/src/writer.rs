//! Writes the directory of a run.

use super::builder::Builder;
use super::document;
use super::process::{self, Process};
use super::{ResolvedPipeline, Run};
use cache::checksummed;
use runner_engine::{Failure, Pace, Reporter, Stamped};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The shortest time between two progress events of a stage in the log, which they would otherwise dominate.
const PROGRESS: Duration = Duration::from_secs(2);

/// Writes the directory of one run. The event log stays locked until the writer is dropped, which
/// distinguishes a run in progress from a killed one.
pub struct Writer {
    dir: PathBuf,
    events: File,
    /// Lines that have not been written yet.
    lines: String,
    builder: Builder,
    pipeline: Option<ResolvedPipeline>,
    /// True if `pipeline.json` holds the pipeline.
    is_written: bool,
    pace: Pace,
    failed: Option<std::io::Error>,
}

impl Writer {
    /// Creates the directory of the run `id`.
    pub fn create(runs: &Path, id: &str) -> Result<Self, Failure> {
        let dir = runs.join(id);
        let logs = dir.join("logs");
        cache::shared::create_dir_all(&logs).map_err(document::unwritable(&logs))?;
        let path = dir.join("events.jsonl");
        let events = File::options()
            .create_new(true)
            .append(true)
            .open(&path)
            .map_err(document::unwritable(&path))?;
        events.lock().map_err(document::unwritable(&path))?;
        let path = dir.join(process::FILE);
        let pid = std::process::id();
        document::text(&Process { pid })
            .and_then(|text| std::fs::write(&path, text))
            .map_err(document::unwritable(&path))?;
        Ok(Self {
            builder: Builder::new(id, &dir),
            dir,
            events,
            lines: String::new(),
            pipeline: None,
            is_written: true,
            pace: Pace::new(PROGRESS),
            failed: None,
        })
    }

    /// Takes the pipeline. `pipeline.json` is written before the first events, in the reporters' thread.
    pub fn pipeline(&mut self, pipeline: ResolvedPipeline) {
        self.pipeline = Some(pipeline);
        self.is_written = false;
    }

    fn write_pipeline(&mut self) {
        let path = self.dir.join("pipeline.json");
        let written = self.pipeline.as_ref().map_or(Ok(()), |pipeline| {
            document::text(pipeline).and_then(|text| std::fs::write(path, text))
        });
        self.failed = self.failed.take().or(written.err());
        self.is_written = true;
    }

    /// The run's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The directory for the logs of stages that do not finish.
    pub fn logs(&self) -> PathBuf {
        self.dir.join("logs")
    }

    /// Closes the event log and returns the run; `None` when it has no events.
    pub fn finish(self) -> Option<Run> {
        self.builder.finish(self.pipeline)
    }

    /// Checks that the pipeline and every event were written.
    ///
    /// # Errors
    /// The first write error.
    pub fn check(&mut self) -> Result<(), Failure> {
        match self.failed.take() {
            None => Ok(()),
            Some(err) => Err(
                Failure::caused(format!("cannot write in `{}`", self.dir.display()), &err)
                    .hint("the results are in the store nevertheless; free some disk space"),
            ),
        }
    }
}

impl Reporter for Writer {
    fn report(&mut self, event: &Stamped) {
        if !self.pace.is_due(&event.event) {
            return;
        }
        self.builder.take(event);
        let mut line = event.to_line();
        checksummed::add_checksum(&mut line);
        self.lines.push_str(&line);
        self.lines.push('\n');
    }

    /// Uses a single write, so that concurrent readers see whole lines.
    fn flush(&mut self) {
        if !self.is_written {
            self.write_pipeline();
        }
        if let Err(err) = self.events.write_all(self.lines.as_bytes()) {
            self.failed.get_or_insert(err);
        }
        self.lines.clear();
    }
}
