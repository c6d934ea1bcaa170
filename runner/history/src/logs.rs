//! The logs of running stages: for programs, the file to which the log is written; for other stages, the log
//! lines among the events.

use super::follow::Follower;
use cache::regular_file;
use runner_engine::{Event, Failure, RunStatus, StageEvent, text};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// The file to which a program's log is written while the program runs; the file remains if the stage does
/// not succeed.
pub fn log_file(run: &Path, stage: &str) -> PathBuf {
    run.join("logs").join(format!("{}.log", text::file_name(stage)))
}

/// The last lines of a file, at most `bytes` long; empty if there is no such file.
pub fn tail(path: &Path, bytes: u64) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = regular_file::open(path)?;
        let skipped = file.metadata()?.len().saturating_sub(bytes);
        file.seek(SeekFrom::Start(skipped))?;
        let mut text = Vec::new();
        file.take(bytes).read_to_end(&mut text)?;
        if skipped > 0 {
            let first = text.iter().position(|&byte| byte == b'\n').map_or(0, |at| at + 1);
            text.drain(..first);
        }
        Ok(text)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}

/// Reads the log of a stage as it is written.
pub struct LogFollower {
    follower: Follower,
    stage: String,
    path: PathBuf,
    file: Option<File>,
    is_over: bool,
}

impl LogFollower {
    /// Opens the log of the stage `stage` of the run `id` at its start.
    pub fn new(runs: &Path, id: &str, stage: &str) -> Result<Self, Failure> {
        Ok(Self {
            follower: Follower::new(runs, id)?,
            stage: stage.to_owned(),
            path: log_file(&runs.join(id), stage),
            file: None,
            is_over: false,
        })
    }

    /// Returns the text written since the last call. If a log exceeds its limit, its middle is omitted, and
    /// its end is only in the file that the stage leaves behind.
    pub fn text(&mut self) -> Result<String, Failure> {
        // Queried first: what was written before the stage ended is read below.
        let is_gone = self.follower.status() != RunStatus::Running;
        let mut out = String::new();
        for stamped in self.follower.events()? {
            match stamped.event {
                Event::Stage {
                    stage,
                    event: StageEvent::Log { line },
                } if stage == self.stage => {
                    out.push_str(&line);
                    out.push('\n');
                }
                Event::StageFinished { stage, .. } if stage == self.stage => self.is_over = true,
                Event::RunFinished { .. } => self.is_over = true,
                _ => {}
            }
        }
        self.is_over |= is_gone;
        if self.file.is_none() {
            self.file = regular_file::open(&self.path).ok();
        }
        if let Some(file) = &mut self.file {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)
                .map_err(Failure::at("cannot read", &self.path))?;
            out.push_str(&String::from_utf8_lossy(&bytes));
        }
        Ok(out)
    }

    /// True once the stage, or the process of its run, has ended.
    pub fn is_over(&self) -> bool {
        self.is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_begins_with_a_whole_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        assert_eq!(tail(&path, 10), "");
        std::fs::write(&path, "one\ntwo\nthree\n").unwrap();
        assert_eq!(tail(&path, 100), "one\ntwo\nthree\n");
        assert_eq!(tail(&path, 12), "two\nthree\n");
        assert_eq!(tail(&path, 3), "");
    }
}
