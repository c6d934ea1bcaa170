//! The searches of a home by name, and the search of a run.

use super::View;
use runner_engine::{Failure, RunStatus};
use runner_history::{self as history, Run};
use runner_pipeline::suggest;
use runner_search::record::{self, Record};
use std::path::{Path, PathBuf};

/// The search of this name: an id or a unique prefix or suffix of one, the name or the file of a pipeline,
/// whose newest search it is, or a run that searched. Without a name, the newest search.
///
/// # Errors
/// If there is none, or several.
pub fn find(home: &Path, name: Option<&str>) -> Result<Record, Failure> {
    let mut all = record::list(home)?;
    let Some(name) = name else {
        let none = || {
            Failure::usage(format!("there are no searches in `{}`", home.display()))
                .hint("`runner exec` of a pipeline with `search:` makes one (docs/guides/search.md)")
        };
        return all.into_iter().next().ok_or_else(none);
    };
    let file = std::path::absolute(name).unwrap_or_default();
    let is_of = |record: &Record| {
        let header = &record.header;
        let absolute = std::path::absolute(&header.file).unwrap_or_default();
        header.id == name || header.pipeline == name || absolute == file
    };
    if let Some(at) = all.iter().position(is_of) {
        return Ok(all.swap_remove(at));
    }
    let is_part = |record: &Record| record.header.id.starts_with(name) || record.header.id.ends_with(name);
    let found: Vec<usize> = (0..all.len())
        .filter(|&at| !name.is_empty() && is_part(&all[at]))
        .collect();
    match found.as_slice() {
        [at] => return Ok(all.swap_remove(*at)),
        [] => {}
        several => {
            let ids = several.iter().take(5).map(|&at| all[at].header.id.as_str());
            return Err(Failure::usage(format!("`{name}` matches {} searches", several.len()))
                .hint(format!("give more of the id: {}", ids.collect::<Vec<_>>().join(", "))));
        }
    }
    let runs = home.join("runs");
    if let Ok(run) = history::resolve(&runs, name).and_then(|id| history::load(&runs, &id)) {
        let none = || {
            Failure::usage(format!("the run {} did not search", run.id))
                .hint("`runner search show` lists the searches")
        };
        return of_run(home, &run).ok_or_else(none);
    }
    let hint = suggest(name, "searches", all.iter().map(|record| record.header.id.as_str()));
    Err(Failure::usage(format!("there is no search `{name}` in `{}`", home.display())).hint(hint))
}

/// The search of a run: one that the run ended, or the one of its pipeline that is running now. `None` if the
/// run did not search, or the record cannot be read.
pub fn of_run(home: &Path, run: &Run) -> Option<Record> {
    let ended = |record: &Record| record.runs.iter().any(|(ran, _)| ran.run == run.id);
    let all = record::list(home).ok()?;
    all.into_iter().find(ended).or_else(|| running(home, run))
}

/// The search that a process is writing for a run: a run writes its own line when it ends.
fn running(home: &Path, run: &Run) -> Option<Record> {
    let entries = std::fs::read_dir(home.join("searches")).ok()?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut ids =
        paths.filter_map(|path| Some(path.file_name()?.to_str()?.strip_suffix(".jsonl")?.to_owned()));
    ids.find_map(|id| {
        let record = record::is_running(home, &id).then(|| Record::read(&record::path(home, &id)))?;
        record
            .ok()?
            .filter(|record| record.header.pipeline == run.pipeline && record.latest() >= run.started)
    })
}

/// The search of a run that is followed.
pub struct SearchOfRun {
    home: PathBuf,
    id: Option<String>,
}

impl SearchOfRun {
    /// The search of a run of this home.
    pub fn new(home: &Path) -> Self {
        Self {
            home: home.to_owned(),
            id: None,
        }
    }

    /// The search as it is now; `None` if the run does not search.
    pub fn read(&mut self, run: &Run) -> Option<View> {
        let record = match &self.id {
            Some(id) => Record::read(&record::path(&self.home, id)).ok()?,
            None if run.status == RunStatus::Running => running(&self.home, run),
            None => of_run(&self.home, run),
        }?;
        self.id = Some(record.header.id.clone());
        Some(View::new(&self.home, record))
    }
}
