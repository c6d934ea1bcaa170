//! Removes runs from the history.

use super::document;
use super::reader::is_running;
use super::{AllMarks, Run};
use runner_engine::Failure;
use runner_engine::RunStatus;
use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::path::Path;

/// The prefix of a directory that is being removed and no longer counts as a run.
const REMOVED: &str = ".removed-";

/// The removable runs, oldest first: runs that have ended, have no marks, are not excluded, and whose
/// artifacts no remaining run uses. `runs` are all runs, oldest first; `is_excluded` receives a run and the
/// number of runs after it.
pub fn removable<'r>(
    runs: &'r [Run],
    marks: &AllMarks,
    is_excluded: impl Fn(&Run, usize) -> bool,
) -> Vec<&'r Run> {
    let remains = |i: usize| {
        let run = &runs[i];
        run.status == RunStatus::Running
            || marks.of.contains_key(&run.id)
            || marks.damaged.contains_key(&run.id)
            || is_excluded(run, runs.len() - 1 - i)
    };
    let by_id: HashMap<&str, usize> = runs.iter().map(|run| run.id.as_str()).zip(0..).collect();
    let mut remaining: HashSet<usize> = (0..runs.len()).filter(|&i| remains(i)).collect();
    let mut queue: Vec<usize> = remaining.iter().copied().collect();
    while let Some(i) = queue.pop() {
        let needed = runs[i].earlier_runs().filter_map(|id| by_id.get(id).copied());
        queue.extend(needed.filter(|&i| remaining.insert(i)).collect::<Vec<_>>());
    }
    let removed = runs.iter().enumerate().filter(|(i, _)| !remaining.contains(i));
    removed.map(|(_, run)| run).collect()
}

/// Removes the directories of these runs, and completes removals that were interrupted.
pub fn remove(runs: &Path, ids: &[String]) -> Result<(), Failure> {
    if let Some(id) = ids.iter().find(|id| is_running(runs, id)) {
        return Err(
            Failure::usage(format!("run {id} is running")).hint("wait until it ends, or interrupt it")
        );
    }
    let failed =
        |path: &Path, err| Failure::at("cannot remove", path)(err).hint("make the directory writable");
    for id in ids {
        let folder = runs.join(id);
        // Renamed first, so that an interrupted removal leaves no partial run in the history.
        match std::fs::rename(&folder, runs.join(format!("{REMOVED}{id}"))) {
            Err(err) if err.kind() != ErrorKind::NotFound => return Err(failed(&folder, err)),
            _ => {}
        }
    }
    for (name, entry) in document::entries(runs)? {
        if name.starts_with(REMOVED) {
            match std::fs::remove_dir_all(entry.path()) {
                // Another process may remove the directory at the same time.
                Err(err) if err.kind() != ErrorKind::NotFound => return Err(failed(&entry.path(), err)),
                _ => {}
            }
        }
    }
    Ok(())
}

/// The size of a run's directory in bytes.
pub fn size(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let entry_size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => size(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    };
    entries.map(entry_size).sum()
}

#[cfg(test)]
mod tests {
    use super::super::{Marks, ResolvedStage, StageRun};
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    fn run(id: &str, status: RunStatus, needs: &str) -> Run {
        let of = ResolvedStage {
            needs: BTreeMap::from([("init".to_owned(), vec![needs.to_owned()])]),
            ..ResolvedStage::default()
        };
        Run {
            id: id.to_owned(),
            dir: id.into(),
            pipeline: "p".to_owned(),
            file: "p.yaml".into(),
            params: BTreeMap::new(),
            program: "runner".to_owned(),
            night: None,
            accounts: Vec::new(),
            status,
            started: chrono::DateTime::UNIX_EPOCH,
            seconds: 1.0,
            stages: vec![StageRun::new(Arc::new(of))],
            lookahead: None,
            damaged: 0,
        }
    }

    #[test]
    fn marked_running_spared_and_needed_runs_stay() {
        use RunStatus::{Done, Killed, Running};
        let runs = [
            run("a", Done, "env.env"),
            run("b", Done, "a/train.policy"),
            run("c", Killed, "env.env"),
            run("d", Done, "env.env"),
            run("e", Running, "c/train.policy"),
            run("f", Done, "b/train.policy"),
        ];
        let mut marks = AllMarks::default();
        let ids = |marks: &AllMarks, last: usize| -> String {
            let removed = removable(&runs, marks, |_, from_last| from_last < last);
            removed.iter().map(|run| run.id.as_str()).collect()
        };
        // `e` is running and uses an artifact of `c`.
        assert_eq!(ids(&marks, 0), "abdf");
        // `f` uses an artifact of `b`, which uses one of `a`.
        assert_eq!(ids(&marks, 1), "d");
        let tags = Marks {
            tags: ["sweep".to_owned()].into(),
            ..Marks::default()
        };
        marks.of.insert("b".to_owned(), tags);
        assert_eq!(ids(&marks, 0), "df");
        marks.damaged.insert("d".to_owned(), Failure::usage("damaged"));
        assert_eq!(ids(&marks, 0), "f");
    }

    #[test]
    fn an_interrupted_removal_is_ended_by_the_next_one() {
        let dir = tempfile::tempdir().unwrap();
        let runs = dir.path().join("runs");
        for name in ["a", "b", ".removed-c"] {
            std::fs::create_dir_all(runs.join(name).join("logs")).unwrap();
            std::fs::write(runs.join(name).join("events.jsonl"), "x").unwrap();
        }
        assert_eq!(super::super::reader::folders(&runs).unwrap(), ["a", "b"]);
        remove(&runs, &["b".to_owned(), "unknown".to_owned()]).unwrap();
        let left: Vec<_> = std::fs::read_dir(&runs)
            .unwrap()
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        assert_eq!(left, ["a"]);
        assert_eq!(size(&runs), 1);
        let going_on = std::fs::File::open(runs.join("a/events.jsonl")).unwrap();
        going_on.lock().unwrap();
        let err = remove(&runs, &["a".to_owned()]).unwrap_err();
        assert_eq!(err.message, "run a is running");
        assert!(runs.join("a/events.jsonl").is_file());
    }
}
