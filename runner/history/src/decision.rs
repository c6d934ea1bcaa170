//! The decision that a policy made after the run of a night: an event behind the end of its log.

use cache::checksummed;
use runner_engine::{DecisionEvent, Event, Failure, Stamped};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

/// The name of the stage that the decision is in the history: `RUN/then`. A pipeline with `then:` has no
/// other stage of it.
pub const THEN: &str = "then";

/// Adds the decision to the event log of a run that has ended.
///
/// # Errors
/// If the log cannot be written.
pub fn add_decision(runs: &Path, run: &str, decision: DecisionEvent) -> Result<(), Failure> {
    let mut line = Stamped::now(Event::Decided {
        run: run.to_owned(),
        decision: Box::new(decision),
    })
    .to_line();
    checksummed::add_checksum(&mut line);
    let path = runs.join(run).join("events.jsonl");
    append(&path, &(line + "\n")).map_err(|err| {
        Failure::caused(format!("cannot write `{}`", path.display()), &err)
            .hint("free some disk space, or make the directory writable")
    })
}

/// Appends a line in one write. What a kill left of an earlier one is cut off.
fn append(path: &Path, line: &str) -> std::io::Result<()> {
    let mut events = File::options().read(true).append(true).open(path)?;
    events.lock()?;
    let end = events.seek(SeekFrom::End(0))?;
    let whole = whole_lines(&mut events, end)?;
    if whole < end {
        events.set_len(whole)?;
    }
    events.write_all(line.as_bytes())
}

/// The length of a file up to the end of its last whole line.
fn whole_lines(file: &mut File, end: u64) -> std::io::Result<u64> {
    const PIECE: u64 = 4096;
    let mut to = end;
    while to > 0 {
        let from = to.saturating_sub(PIECE);
        let mut piece = vec![0; (to - from) as usize];
        file.seek(SeekFrom::Start(from))?;
        file.read_exact(&mut piece)?;
        if let Some(at) = piece.iter().rposition(|byte| *byte == b'\n') {
            return Ok(from + at as u64 + 1);
        }
        to = from;
    }
    Ok(0)
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
