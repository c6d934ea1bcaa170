//! Marks that people set on a run: a name, tags, and `keep`. They are stored in `marks.json` in the run's
//! directory.

mod new_run;

pub use new_run::{begin, check};

use super::document;
use super::model::Run;
use super::reader::{folders, has_events};
use cache::shared;
use rayon::prelude::*;
use runner_engine::Failure;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The marks of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Marks {
    /// A name that can be used in place of the id. Unique.
    pub name: Option<String>,
    /// Free-form labels.
    pub tags: BTreeSet<String>,
    /// If set, `cache gc` keeps everything that the run needs.
    pub kept: bool,
}

impl Marks {
    /// The suffix of a run's id: ` (baseline; sweep, lr; kept)`, or nothing.
    pub fn suffix(&self) -> String {
        let mut parts: Vec<String> = self.name.iter().cloned().collect();
        if !self.tags.is_empty() {
            let tags: Vec<&str> = self.tags.iter().map(String::as_str).collect();
            parts.push(format!("tags {}", tags.join(", ")));
        }
        parts.extend(self.kept.then(|| "kept".to_owned()));
        match parts.is_empty() {
            true => String::new(),
            false => format!(" ({})", parts.join("; ")),
        }
    }
}

/// The marks of the runs that have any, by id, and the read errors.
#[derive(Debug, Default)]
pub struct AllMarks {
    /// The marks.
    pub of: BTreeMap<String, Marks>,
    /// The errors of the runs whose marks are damaged.
    pub damaged: BTreeMap<String, Failure>,
}

impl AllMarks {
    /// Reads the marks of all runs in the directory `runs`.
    pub fn read(runs: &Path) -> Result<Self, Failure> {
        let mut all = Self::of(runs, folders(runs)?);
        all.of.retain(|id, _| has_events(runs, id));
        all.damaged.retain(|id, _| has_events(runs, id));
        Ok(all)
    }

    /// Reads the marks of the given runs.
    pub fn of(runs: &Path, ids: Vec<String>) -> Self {
        let marked: Vec<(String, Result<Marks, Failure>)> = ids
            .into_par_iter()
            .map(|id| {
                let marks = read(runs, &id);
                (id, marks)
            })
            .filter(|(_, marks)| marks.as_ref().map_or(true, |marks| *marks != Marks::default()))
            .collect();
        let mut all = Self::default();
        for (id, marks) in marked {
            match marks {
                Ok(marks) => drop(all.of.insert(id, marks)),
                Err(damage) => drop(all.damaged.insert(id, damage)),
            }
        }
        all
    }

    /// The ids of the kept runs, all of which must be among `runs`.
    ///
    /// # Errors
    /// When the marks, or the needs of a kept run, cannot be determined: nothing may be removed then.
    pub fn kept(&self, runs: &[Run]) -> Result<Vec<String>, Failure> {
        if let Some(damaged) = self.damaged.values().next() {
            return Err(damaged.clone());
        }
        let kept = self.of.iter().filter(|(_, marks)| marks.kept);
        let kept: Vec<String> = kept.map(|(id, _)| id.clone()).collect();
        let known: HashSet<&str> = runs.iter().map(|run| run.id.as_str()).collect();
        match kept.iter().find(|id| !known.contains(id.as_str())) {
            Some(id) => Err(
                Failure::machine(format!("run {id} is kept, but its events cannot be read")).hint(format!(
                    "nothing was removed; `runner runs unkeep {id}` removes its protection"
                )),
            ),
            None => Ok(kept),
        }
    }

    /// The id of the run with the name `name`.
    pub fn named(&self, name: &str) -> Option<&str> {
        let found = self.of.iter().find(|(_, marks)| marks.name.as_deref() == Some(name));
        found.map(|(id, _)| id.as_str())
    }
}

/// Reads the marks of a run for display. Damaged marks cause a warning and are omitted.
pub fn readable(runs: &Path, id: &str, warn: &mut dyn FnMut(&str)) -> Marks {
    read(runs, id).unwrap_or_else(|failure| {
        warn(&failure.to_string());
        Marks::default()
    })
}

/// Finds the id of the run with the name `name`.
pub fn named(runs: &Path, name: &str) -> Result<Option<String>, Failure> {
    let is_called = |id: &String| read(runs, id).is_ok_and(|marks| marks.name.as_deref() == Some(name));
    Ok(names(runs)?.remove(name).filter(is_called))
}

/// The file of all names, `HOME/index/names.json`, which [`edit`] maintains: a new name is compared with
/// those of thousands of runs without opening them.
fn names_path(runs: &Path) -> PathBuf {
    runs.with_file_name("index").join("names.json")
}

/// The ids of the runs, by name. Without the names file, all runs are read.
fn names(runs: &Path) -> Result<BTreeMap<String, String>, Failure> {
    if let Ok(Some(names)) = document::read(&names_path(runs), "") {
        return Ok(names);
    }
    let all = AllMarks::read(runs)?.of.into_iter();
    Ok(all.filter_map(|(id, marks)| Some((marks.name?, id))).collect())
}

fn path(runs: &Path, id: &str) -> PathBuf {
    runs.join(id).join("marks.json")
}

/// Reads the marks of a run; the default if it has none.
pub fn read(runs: &Path, id: &str) -> Result<Marks, Failure> {
    let hint = format!("mark the run again, for example `runner runs keep {id}`: that replaces the file");
    Ok(document::read(&path(runs, id), &hint)?.unwrap_or_default())
}

/// Changes the marks of a run and returns the new ones. Damaged marks are replaced.
pub fn edit(runs: &Path, id: &str, change: impl FnOnce(&mut Marks)) -> Result<Marks, Failure> {
    let _lock = lock(runs)?;
    let before = read(runs, id).unwrap_or_default();
    let mut marks = before.clone();
    change(&mut marks);
    if marks.name != before.name
        && let Some(name) = &marks.name
    {
        check_name(runs, name)?;
    }
    marks.tags.difference(&before.tags).try_for_each(|tag| check_tag(tag))?;
    let path = path(runs, id);
    let mut renamed = match marks.name == before.name {
        true => None,
        false => Some(names(runs)?),
    };
    if renamed.is_some() {
        // Removed before the marks are written: if the process is killed after this, names are read from the
        // runs.
        let _ = std::fs::remove_file(names_path(runs));
    }
    document::write(&path, &marks).map_err(|err| {
        Failure::caused(format!("cannot write `{}`", path.display()), &err).hint(
            "free some disk space, make the directory writable, or move away whatever is in the file's place",
        )
    })?;
    if let Some(names) = &mut renamed {
        names.retain(|_, of| *of != id);
        names.extend(marks.name.clone().map(|name| (name, id.to_owned())));
        let path = names_path(runs);
        let _ = path.parent().map_or(Ok(()), shared::create_dir_all);
        let _ = document::write(&path, names);
    }
    Ok(marks)
}

/// The longest wait for another process that changes marks, and the interval of the attempts.
const WAIT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(5);

/// The lock that is held while marks are changed, so that names stay unique.
fn lock(runs: &Path) -> Result<File, Failure> {
    let failed = |err: std::io::Error| Failure::caused(format!("cannot lock `{}`", runs.display()), &err);
    let folder = File::open(runs).map_err(failed)?;
    let began = Instant::now();
    loop {
        match folder.try_lock() {
            Err(TryLockError::WouldBlock) if began.elapsed() < WAIT => std::thread::sleep(POLL),
            Err(TryLockError::WouldBlock) => {
                let message = format!(
                    "another process has held the lock of `{}` for {} s",
                    runs.display(),
                    WAIT.as_secs()
                );
                return Err(Failure::machine(message).hint("find the `runner` that hangs, and end it"));
            }
            // Some network file systems do not support locks.
            Err(TryLockError::Error(err)) if err.kind() != ErrorKind::Unsupported => return Err(failed(err)),
            _ => return Ok(folder),
        }
    }
}

/// The longest name or tag, in bytes.
const LONGEST: usize = 64;

/// Checks that `name` is valid and not taken.
///
/// # Errors
/// When the name is invalid, or another run has it.
pub fn check_name(runs: &Path, name: &str) -> Result<(), Failure> {
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
        && name.len() <= LONGEST;
    if !plain || name == "latest" {
        return Err(
            Failure::usage(format!("`{name}` cannot be the name of a run")).hint(format!(
                "a name begins with a letter and has letters, digits, `_`, `-` and `.`, {LONGEST} at most; \
            `latest` is reserved"
            )),
        );
    }
    match named(runs, name)? {
        Some(other) => Err(
            Failure::usage(format!("run {other} already has the name `{name}`")).hint(format!(
                "choose another, or remove it first: `runner runs unname {name}`"
            )),
        ),
        None => Ok(()),
    }
}

/// Checks that `tag` is valid.
pub fn check_tag(tag: &str) -> Result<(), Failure> {
    let plain = |c: char| c.is_alphanumeric() || "_-.:/+@".contains(c);
    if tag.is_empty() || tag.len() > LONGEST || !tag.chars().all(plain) || tag.starts_with('-') {
        return Err(Failure::usage(format!("`{tag}` cannot be a tag")).hint(format!(
            "a tag has letters, digits and `_-.:/+@`, {LONGEST} bytes at most, and does not begin with `-`"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The directory of runs of a store of its own: the index lies beside it.
    struct Runs {
        _home: tempfile::TempDir,
        path: PathBuf,
    }

    impl Runs {
        fn path(&self) -> &Path {
            &self.path
        }
    }

    fn runs(ids: &[&str]) -> Runs {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("runs");
        for id in ids {
            std::fs::create_dir_all(path.join(id)).unwrap();
            std::fs::write(path.join(id).join("events.jsonl"), "").unwrap();
        }
        Runs { _home: home, path }
    }

    fn name(runs: &Path, id: &str, name: &str) -> Result<Marks, Failure> {
        edit(runs, id, |marks| marks.name = Some(name.to_owned()))
    }

    #[test]
    fn marks_are_written_whole_and_read_back() {
        let dir = runs(&["a", "b"]);
        let runs = dir.path();
        assert_eq!(read(runs, "a").unwrap(), Marks::default());
        name(runs, "a", "best").unwrap();
        edit(runs, "a", |marks| marks.tags.extend(["good".to_owned()])).unwrap();
        let kept = edit(runs, "a", |marks| marks.kept = true).unwrap();
        assert_eq!(read(runs, "a").unwrap(), kept);
        assert_eq!(kept.name.as_deref(), Some("best"));
        assert!(kept.kept && kept.tags.contains("good"));
        assert_eq!(AllMarks::read(runs).unwrap().named("best"), Some("a"));
        assert!(!runs.join("a/marks.json.new").exists());
    }

    #[test]
    fn names_are_unique_and_are_no_ids() {
        let dir = runs(&["a", "b"]);
        let runs = dir.path();
        name(runs, "a", "best").unwrap();
        let taken = name(runs, "b", "best").unwrap_err();
        assert_eq!(taken.code, runner_engine::exit::WRONG_USAGE);
        assert!(taken.message.contains("run a already has the name"), "{taken}");
        name(runs, "a", "best").unwrap();
        let long = "a".repeat(65);
        for wrong in [
            "latest",
            "",
            "20261120T213045-k3f9",
            "20261120",
            "a/b",
            "a b",
            "-a",
            "a[1]",
            &long,
        ] {
            assert_eq!(
                name(runs, "b", wrong).unwrap_err().code,
                runner_engine::exit::WRONG_USAGE,
                "{wrong}"
            );
        }
        for wrong in ["", "a b", "a,b", "-a", "\"a\""] {
            let tagged = edit(runs, "b", |marks| marks.tags.extend([wrong.to_owned()]));
            assert_eq!(tagged.unwrap_err().code, runner_engine::exit::WRONG_USAGE, "{wrong}");
        }
        assert_eq!(read(runs, "b").unwrap(), Marks::default());
    }

    #[test]
    fn names_stand_for_runs() {
        let dir = runs(&["20261120T213045-k3f9", "20261120T213046-k3g0"]);
        let runs = dir.path();
        name(runs, "20261120T213045-k3f9", "k3g0").unwrap();
        let id = |name: &str| super::super::resolve(runs, name).unwrap();
        // A whole name comes before a part of another run's id.
        assert_eq!(id("k3g0"), "20261120T213045-k3f9");
        assert_eq!(id("3g0"), "20261120T213046-k3g0");
        assert_eq!(id("latest"), "20261120T213046-k3g0");
    }

    #[test]
    fn damaged_marks_are_named_and_replaced() {
        let dir = runs(&["a"]);
        let runs = dir.path();
        std::fs::write(runs.join("a/marks.json"), "{\"name\":").unwrap();
        let all = AllMarks::read(runs).unwrap();
        assert!(all.of.is_empty());
        assert!(all.damaged["a"].message.contains("marks.json"), "{}", all.damaged["a"]);
        assert!(edit(runs, "a", |marks| marks.kept = true).unwrap().kept);
        assert!(AllMarks::read(runs).unwrap().damaged.is_empty());
    }
}
