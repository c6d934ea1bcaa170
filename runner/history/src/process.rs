//! `process.json`: the process of a run, for commands that stop the run.

use super::document;
use super::reader::is_running;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The name of the file in a run's directory.
pub(crate) const FILE: &str = "process.json";

#[derive(Serialize, Deserialize)]
pub(crate) struct Process {
    pub pid: u32,
}

/// The process id of a run, while the run is in progress on this machine.
pub fn process(runs: &Path, id: &str) -> Option<u32> {
    let process: Process = document::read(&runs.join(id).join(FILE), "").ok()??;
    // The lock on the run's events shows that the process is alive, so that its id cannot have been reused.
    is_running(runs, id).then_some(process.pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_while_its_run_is_running() {
        let dir = tempfile::tempdir().unwrap();
        let writer = crate::Writer::create(dir.path(), "a").unwrap();
        assert_eq!(process(dir.path(), "a"), Some(std::process::id()));
        drop(writer);
        assert_eq!(process(dir.path(), "a"), None);
        let writer = crate::Writer::create(dir.path(), "b").unwrap();
        let text = document::text(&Process { pid: 7 }).unwrap();
        std::fs::write(dir.path().join("b").join(FILE), text.replace('7', "8")).unwrap();
        assert_eq!(process(dir.path(), "b"), None);
        drop(writer);
    }
}
