//! `process.json`: the process of a run, for those who want to stop it.

use super::reader::is_running;
use cache::{checksummed, regular_file};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The name of the file in a run's directory.
pub(crate) const FILE: &str = "process.json";

#[derive(Serialize, Deserialize)]
struct Process {
    pid: u32,
}

/// The text of the file.
pub(crate) fn text(pid: u32) -> String {
    let mut text = serde_json::json!(Process { pid }).to_string();
    checksummed::add_checksum(&mut text);
    text
}

/// The number of the process of a run, while it is running on this machine.
pub fn process(runs: &Path, id: &str) -> Option<u32> {
    let bytes = regular_file::read(&runs.join(id).join(FILE)).ok()?;
    let process: Process =
        checksummed::matches_checksum(&bytes).then(|| serde_json::from_slice(&bytes).ok())??;
    // The lock on its events tells that the process is alive, so that its number is not another's by now.
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
        std::fs::write(dir.path().join("b").join(FILE), text(7).replace('7', "8")).unwrap();
        assert_eq!(process(dir.path(), "b"), None);
        drop(writer);
    }
}
