//! Events that follow the run of a night, a policy's decision and the night of a paper account, appended
//! after the end of the run's log.

use cache::checksummed;
use runner_engine::{DecisionEvent, Event, Failure, Stamped};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;

/// The name of the stage that represents the decision in the history: `RUN/then`. No other stage of a
/// pipeline with `then:` has this name.
pub const THEN: &str = "then";

/// Adds the decision to the event log of a run that has ended.
pub fn add_decision(runs: &Path, run: &str, decision: DecisionEvent) -> Result<(), Failure> {
    let decision = Box::new(decision);
    add(runs, run, |run| Event::Decided { run, decision })
}

/// Adds to the event log of a run that has ended that it booked a night of a paper account.
pub fn add_account(runs: &Path, run: &str, account: &str) -> Result<(), Failure> {
    let account = account.to_owned();
    add(runs, run, |run| Event::Booked { run, account })
}

fn add(runs: &Path, run: &str, event: impl FnOnce(String) -> Event) -> Result<(), Failure> {
    let mut line = Stamped::now(event(run.to_owned())).to_line();
    checksummed::add_checksum(&mut line);
    let path = runs.join(run).join("events.jsonl");
    append(&path, &(line + "\n")).map_err(|err| {
        Failure::at("cannot write", &path)(err).hint("free some disk space, or make the directory writable")
    })
}

/// Appends a line in a single write. A partial line left by a killed process is cut off first.
fn append(path: &Path, line: &str) -> std::io::Result<()> {
    let mut events = File::options().read(true).append(true).open(path)?;
    events.lock()?;
    let mut bytes = Vec::new();
    events.read_to_end(&mut bytes)?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if whole < bytes.len() {
        events.set_len(whole as u64)?;
    }
    events.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_is_cut_off_before_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let torn = "x".repeat(10_000);
        for (before, after) in [
            (String::new(), "new\n".to_owned()),
            ("a\nb\n".to_owned(), "a\nb\nnew\n".to_owned()),
            (format!("a\nb\n{torn}"), "a\nb\nnew\n".to_owned()),
            (format!("{torn}\ny"), format!("{torn}\nnew\n")),
            (torn.clone(), "new\n".to_owned()),
        ] {
            std::fs::write(&path, before).unwrap();
            append(&path, "new\n").unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), after);
        }
    }
}
