//! The decision that a policy made after the run of a night: `runs/RUN/decision.json`, as `runner policy act --json` prints it.

use crate::marks::write;
use runner_engine::Failure;
use serde::Serialize;
use std::path::Path;

/// The name of the file.
pub const DECISION: &str = "decision.json";

/// Writes the decision of a run, whole.
///
/// # Errors
/// If the file cannot be written.
pub fn save_decision(runs: &Path, run: &str, decision: &impl Serialize) -> Result<(), Failure> {
    let path = runs.join(run).join(DECISION);
    let failed = |err: std::io::Error| {
        Failure::caused(format!("cannot write `{}`", path.display()), &err)
            .hint("free some disk space, or make the directory writable")
    };
    let text = serde_json::to_string_pretty(decision).map_err(|err| failed(err.into()))?;
    write(&path, (text + "\n").as_bytes()).map_err(failed)
}
