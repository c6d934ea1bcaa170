//! Candidates of arguments. What cannot be read yields none: a completion shows no errors.

use crate::registry;
use crate::session::{Session, folder_of};
use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter as _};
use datasets::layout::{Table, known};
use runner_history::paper::Ledger;
use runner_history::policies::Registry;
use runner_history::{self as history, AllMarks};
use runner_pipeline as pipeline;
use runner_search::record;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The number of last runs that are candidates.
const RUNS: usize = 30;

/// The candidates that begin with the word, in their order.
pub(crate) fn beginning<'a>(
    current: &str,
    all: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
) -> Vec<CompletionCandidate> {
    let fitting = all.into_iter().filter(|(value, _)| value.starts_with(current));
    fitting
        .enumerate()
        .map(|(i, (value, about))| {
            CompletionCandidate::new(value)
                .help(about.map(|about| about.to_owned().into()))
                .display_order(Some(i))
        })
        .collect()
}

pub(crate) fn plain<'a>(
    current: &str,
    all: impl IntoIterator<Item = &'a String>,
) -> Vec<CompletionCandidate> {
    beginning(current, all.into_iter().map(|value| (value.as_str(), None)))
}

pub(crate) fn session() -> Option<Session> {
    Session::bare().ok()
}

fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "yaml" || end == "yml")
}

/// Pipeline files.
pub(crate) fn pipelines(_: &[String], current: &str) -> Vec<CompletionCandidate> {
    PathCompleter::any()
        .filter(|path| path.is_file() && is_yaml(path))
        .complete(OsStr::new(current))
}

/// The pipeline file of a line: the first YAML file.
pub(crate) fn file_of(line: &[String]) -> Option<PathBuf> {
    let mut words = line.iter().skip(1).map(PathBuf::from);
    words.find(|word| is_yaml(word) && word.is_file())
}

/// Stage kinds.
pub(crate) fn kinds(_: &[String], current: &str) -> Vec<CompletionCandidate> {
    let kinds = registry::kinds().iter();
    beginning(
        current,
        kinds
            .map(|kind| (kind.name(), kind.about().lines().next()))
            .chain([("python", None)]),
    )
}

/// Types of programs' outputs.
pub(crate) fn types(_: &[String], current: &str) -> Vec<CompletionCandidate> {
    beginning(current, pipeline::types().map(|ty| (ty.name(), None)))
}

/// Layouts of vendors' files.
pub(crate) fn layouts(_: &[String], current: &str) -> Vec<CompletionCandidate> {
    let all = Table::ALL.iter().copied().flat_map(known);
    beginning(current, all.map(|layout| (layout.name.as_str(), None)))
}

/// The home of a line: that of its pipeline, or of the working directory.
fn home(line: &[String]) -> Option<PathBuf> {
    let session = session()?;
    let start = file_of(line).and_then(|file| folder_of(&session.current, &file));
    Some(session.home(start.as_deref()))
}

/// `latest`, the names of runs, and the ids of the last ones.
pub(crate) fn runs(line: &[String], current: &str) -> Vec<CompletionCandidate> {
    described(current, &names_of_runs(line))
}

fn described(current: &str, all: &[(String, String)]) -> Vec<CompletionCandidate> {
    beginning(
        current,
        all.iter().map(|(name, about)| (name.as_str(), Some(about.as_str()))),
    )
}

/// The names of runs, and what they are.
fn names_of_runs(line: &[String]) -> Vec<(String, String)> {
    let Some(dir) = home(line).map(|home| home.join("runs")) else {
        return Vec::new();
    };
    let (last, _) = history::last(&dir, RUNS).unwrap_or_default();
    let about = |run: &history::Run| format!("{}, {}", run.pipeline, run.status.name());
    let mut found: Vec<(String, String)> = Vec::new();
    found.extend(last.last().map(|run| ("latest".to_owned(), about(run))));
    let marks = AllMarks::read(&dir).map(|marks| marks.of).unwrap_or_default();
    let named = marks
        .iter()
        .filter_map(|(id, marks)| Some((marks.name.clone()?, id.clone())));
    found.extend(named);
    found.extend(last.iter().rev().map(|run| (run.id.clone(), about(run))));
    found
}

/// RUN/STAGE, and RUN/STAGE.OUTPUT once the dot is written; before the slash, runs.
pub(crate) fn stages_of_runs(line: &[String], current: &str) -> Vec<CompletionCandidate> {
    let Some((run, stage)) = current.split_once('/') else {
        let mut runs = names_of_runs(line);
        runs.iter_mut().for_each(|(name, _)| name.push('/'));
        let mut found = described(current, &runs);
        found.extend(policies(line, current));
        return found;
    };
    let Some(dir) = home(line).map(|home| home.join("runs")) else {
        return Vec::new();
    };
    let id = history::resolve(&dir, run);
    let Ok(found) = id.and_then(|id| history::load(&dir, &id)) else {
        return Vec::new();
    };
    // The dot before an output follows the brackets.
    let wants_output = stage.rsplit(']').next().is_some_and(|end| end.contains('.'));
    let mut all = Vec::new();
    for stage in &found.stages {
        match wants_output {
            false => all.push(format!("{run}/{}", stage.id)),
            true => all.extend(
                stage
                    .outputs
                    .keys()
                    .map(|output| format!("{run}/{}.{output}", stage.id)),
            ),
        }
    }
    plain(current, &all)
}

/// Searches by their ids, the newest first.
pub(crate) fn searches(line: &[String], current: &str) -> Vec<CompletionCandidate> {
    let all = home(line).and_then(|home| record::list(&home).ok()).unwrap_or_default();
    let names: Vec<(String, String)> = all
        .into_iter()
        .map(|record| {
            let about = format!("{}, {} jobs", record.header.pipeline, record.jobs.len());
            (record.header.id, about)
        })
        .collect();
    described(current, &names)
}

/// Paper accounts.
pub(crate) fn accounts(line: &[String], current: &str) -> Vec<CompletionCandidate> {
    let names = home(line).and_then(|home| Ledger::names(&home).ok());
    plain(current, &names.unwrap_or_default())
}

/// Registered policies: their names, and NAME@ALIAS.
pub(crate) fn policies(line: &[String], current: &str) -> Vec<CompletionCandidate> {
    let Some(registry) = home(line).map(|home| Registry::new(&home)) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for name in registry.names().unwrap_or_default() {
        if let Ok(Some(policy)) = registry.read(&name) {
            all.extend(policy.aliases().keys().map(|alias| format!("{name}@{alias}")));
        }
        all.push(name);
    }
    plain(current, &all)
}
