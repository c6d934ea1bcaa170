//! What people say of a run: its name, its tags, and that it is to be kept. `marks.json` in the run's folder.

use super::index::{self, Index};
use super::reader::{folders, has_events};
use rayon::prelude::*;
use runner_engine::Failure;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// The file of [`stamp`], in the folder of the index.
const STAMP: &str = "names.stamp";

/// The marks of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Marks {
    /// Stands for the run wherever one is named. No two runs have the same.
    pub name: Option<String>,
    /// Whatever helps to find it.
    pub tags: BTreeSet<String>,
    /// Whether `cache gc` keeps all that it needs.
    pub kept: bool,
}

/// The marks of all runs that have any, by id, and what could not be read.
#[derive(Debug, Default)]
pub struct AllMarks {
    /// The marks.
    pub of: BTreeMap<String, Marks>,
    /// Runs whose marks are damaged, and what is wrong with them.
    pub damaged: BTreeMap<String, Failure>,
}

impl AllMarks {
    /// Those of the runs in the folder `runs`.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn read(runs: &Path) -> Result<Self, Failure> {
        let mut all = Self::of_runs(runs, folders(runs)?);
        all.of.retain(|id, _| has_events(runs, id));
        all.damaged.retain(|id, _| has_events(runs, id));
        Ok(all)
    }

    /// Those of these runs.
    pub fn of_runs(runs: &Path, ids: Vec<String>) -> Self {
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

    /// The run of that name.
    pub fn named(&self, name: &str) -> Option<&str> {
        let found = self.of.iter().find(|(_, marks)| marks.name.as_deref() == Some(name));
        found.map(|(id, _)| id.as_str())
    }
}

/// The run of that name, by the index where that has every name.
///
/// # Errors
/// When the folder of runs cannot be read.
pub fn named(runs: &Path, name: &str) -> Result<Option<String>, Failure> {
    let is_called = |id: &String| read(runs, id).is_ok_and(|marks| marks.name.as_deref() == Some(name));
    let stamp = stamp(runs);
    let mut index = Index::open(runs);
    if let Some(found) = index.as_ref().and_then(|index| index.named(name, &stamp))
        && found.as_ref().is_none_or(is_called)
    {
        return Ok(found);
    }
    let all = AllMarks::read(runs)?;
    if let Some(index) = &mut index {
        let names = all
            .of
            .iter()
            .filter_map(|(id, marks)| Some((marks.name.as_deref()?, id.as_str())));
        index.set_names(names, &stamp);
    }
    Ok(all.named(name).map(ToOwned::to_owned))
}

/// The text that changes with every name that is given or taken away: where it is another than the index has seen, that has
/// missed a change.
fn stamp(runs: &Path) -> String {
    let path = index::folder(runs).map(|folder| folder.join(STAMP));
    path.and_then(|path| std::fs::read_to_string(path).ok())
        .unwrap_or_default()
}

fn set_stamp(runs: &Path, stamp: &str) -> std::io::Result<()> {
    let Some(folder) = index::folder(runs) else {
        return Ok(());
    };
    std::fs::create_dir_all(&folder)?;
    let mut file = File::create(folder.join(STAMP))?;
    file.write_all(stamp.as_bytes())?;
    file.sync_all()
}

fn path(runs: &Path, id: &str) -> PathBuf {
    runs.join(id).join("marks.json")
}

/// The marks of a run; none where it has no file of them.
///
/// # Errors
/// When the file cannot be read, or is damaged.
pub fn read(runs: &Path, id: &str) -> Result<Marks, Failure> {
    let path = path(runs, id);
    let failed = |err: &dyn std::error::Error| {
        Failure::caused(format!("cannot read `{}`", path.display()), err).hint(format!(
            "mark the run again, such as `runner runs keep {id}`: that replaces the file"
        ))
    };
    match std::fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|err| failed(&err)),
        Err(err) if err.kind() == ErrorKind::NotFound => Ok(Marks::default()),
        Err(err) => Err(failed(&err)),
    }
}

/// Changes the marks of a run, and returns them as they are then. Damaged ones are replaced.
///
/// # Errors
/// When a new name or tag cannot be one, another run has the name, or the file cannot be written.
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
    let new = path.with_extension("json.new");
    let is_renamed = marks.name != before.name;
    let (seen, stamp) = (stamp(runs), format!("{id} {:?}", std::time::SystemTime::now()));
    let write = || {
        // First: a process that ends behind it leaves an index that knows that it has to look.
        if is_renamed {
            let _ = set_stamp(runs, &stamp);
        }
        let mut file = File::create(&new)?;
        file.write_all((serde_json::to_string(&marks)? + "\n").as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&new, &path)
    };
    match write() {
        Ok(()) => {
            if is_renamed && let Some(mut index) = Index::open(runs) {
                index.rename(id, marks.name.as_deref(), &seen, &stamp);
            }
            Ok(marks)
        }
        Err(err) => {
            let _ = std::fs::remove_file(&new);
            Err(Failure::caused(format!("cannot write `{}`", path.display()), &err)
                .hint("make room on the disk, or make the folder writable"))
        }
    }
}

/// Held while marks are changed: two runs must not get one name.
fn lock(runs: &Path) -> Result<File, Failure> {
    let failed = |err: std::io::Error| Failure::caused(format!("cannot lock `{}`", runs.display()), &err);
    let folder = File::open(runs).map_err(failed)?;
    match folder.lock() {
        // Some network file systems have no locks.
        Err(err) if err.kind() != ErrorKind::Unsupported => Err(failed(err)),
        _ => Ok(folder),
    }
}

/// Longer names and tags are a mistake.
const LONGEST: usize = 64;

/// Whether a new run may be called so.
///
/// # Errors
/// When it cannot be a name, or another run has it.
pub fn check_name(runs: &Path, name: &str) -> Result<(), Failure> {
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
        && name.len() <= LONGEST;
    if !plain || name == "latest" {
        return Err(Failure::usage(format!("`{name}` cannot be the name of a run")).hint(format!(
            "a name begins with a letter and has letters, digits, `_`, `-` and `.`, {LONGEST} at most; `latest` is taken"
        )));
    }
    match named(runs, name)? {
        Some(other) => Err(
            Failure::usage(format!("run {other} has the name `{name}` already")).hint(format!(
                "choose another, or take it away first: `runner runs unname {name}`"
            )),
        ),
        None => Ok(()),
    }
}

/// Whether it can be a tag.
///
/// # Errors
/// When it cannot.
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

    fn runs(ids: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for id in ids {
            std::fs::create_dir(dir.path().join(id)).unwrap();
            std::fs::write(dir.path().join(id).join("events.jsonl"), "").unwrap();
        }
        dir
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
        assert!(taken.message.contains("run a has the name"), "{taken}");
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
