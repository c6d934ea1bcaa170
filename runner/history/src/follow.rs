//! Follows the event log of a running run.

use cache::regular_file;
use runner_engine::{Failure, RunStatus, Stamped};
use std::fs::{File, TryLockError};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Reads the events of one run as they are written.
pub struct Follower {
    path: PathBuf,
    file: File,
    /// The beginning of a line that is still being written.
    rest: Vec<u8>,
}

impl Follower {
    /// Opens the event log of the run `id` at its start.
    pub fn new(runs: &Path, id: &str) -> Result<Self, Failure> {
        let path = runs.join(id).join("events.jsonl");
        let file = regular_file::open(&path).map_err(Failure::at("cannot read", &path))?;
        Ok(Self {
            path,
            file,
            rest: Vec::new(),
        })
    }

    /// The events that were written since the last call.
    pub fn events(&mut self) -> Result<Vec<Stamped>, Failure> {
        let read = self.file.read_to_end(&mut self.rest);
        read.map_err(Failure::at("cannot read", &self.path))?;
        let whole = self.rest.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let lines: Vec<u8> = self.rest.drain(..whole).collect();
        Ok(String::from_utf8_lossy(&lines)
            .lines()
            .filter_map(Stamped::from_line)
            .collect())
    }

    /// The run's status while it has no last event: [`RunStatus::Running`] if its process is alive,
    /// [`RunStatus::Killed`] otherwise. The status of a run that ended is in its last event.
    pub fn status(&self) -> RunStatus {
        match self.file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => RunStatus::Running,
            Ok(()) => {
                let _ = self.file.unlock();
                RunStatus::Killed
            }
            Err(TryLockError::Error(_)) => RunStatus::Killed,
        }
    }
}
