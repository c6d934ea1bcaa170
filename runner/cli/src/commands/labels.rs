//! `runner runs name|unname|tag|untag|keep|unkeep`, and the marks that other commands set and respect.

use crate::args::LabelCommand;
use crate::output;
use crate::session::Session;
use runner_engine::{Failure, RunStatus};
use runner_history::{self as history, AllMarks, Marks, Run, marks};
use serde::Serialize;
use std::path::Path;

/// A run as JSON, with its marks.
#[derive(Serialize)]
pub(crate) struct Marked<'r> {
    #[serde(flatten)]
    pub run: &'r Run,
    #[serde(flatten)]
    pub marks: &'r Marks,
}

pub(crate) fn mark(session: &Session, command: &LabelCommand) -> Result<(), Failure> {
    let runs = session.home(None).join("runs");
    let (LabelCommand::Name { run, .. }
    | LabelCommand::Unname { run }
    | LabelCommand::Tag { run, .. }
    | LabelCommand::Untag { run, .. }
    | LabelCommand::Keep { run }
    | LabelCommand::Unkeep { run }) = command;
    let id = history::resolve(&runs, run)?;
    if let LabelCommand::Untag { tags, .. } = command {
        let known = marks::read(&runs, &id)?.tags;
        if let Some(unknown) = tags.iter().find(|tag| !known.contains(*tag)) {
            let hint = runner_pipeline::suggest(unknown, "tags", known.iter().map(String::as_str));
            return Err(Failure::usage(format!("run {id} has no tag `{unknown}`")).hint(hint));
        }
    }
    let marks = marks::edit(&runs, &id, |marks| match command {
        LabelCommand::Name { name, .. } => marks.name = Some(name.clone()),
        LabelCommand::Unname { .. } => marks.name = None,
        LabelCommand::Tag { tags, .. } => marks.tags.extend(tags.iter().cloned()),
        LabelCommand::Untag { tags, .. } => marks.tags.retain(|tag| !tags.contains(tag)),
        LabelCommand::Keep { .. } => marks.kept = true,
        LabelCommand::Unkeep { .. } => marks.kept = false,
    })?;
    if session.json {
        return output::print_json(&serde_json::json!({
            "run": id, "name": marks.name, "tags": marks.tags, "kept": marks.kept,
        }));
    }
    output::print(&format!("run {id}{}\n", after(&marks)))
}

/// The marks of a run for display. Damaged ones cause a warning and are omitted.
pub(crate) fn of(runs: &Path, id: &str) -> Marks {
    marks::read(runs, id).unwrap_or_else(|failure| {
        super::filter::warn(&failure.to_string());
        Marks::default()
    })
}

/// The suffix of a run's id: ` (baseline; sweep, lr; kept)`, or nothing.
pub(crate) fn after(marks: &Marks) -> String {
    let mut parts: Vec<String> = marks.name.iter().cloned().collect();
    if !marks.tags.is_empty() {
        parts.push(format!(
            "tags {}",
            marks.tags.iter().cloned().collect::<Vec<_>>().join(", ")
        ));
    }
    parts.extend(marks.kept.then(|| "kept".to_owned()));
    match parts.is_empty() {
        true => String::new(),
        false => format!(" ({})", parts.join("; ")),
    }
}

/// Checks that a new run may have this name and these tags. The name of a run that failed is free.
pub(crate) fn check(runs: &Path, name: Option<&str>, tags: &[String]) -> Result<(), Failure> {
    if let Some(name) = name
        && failed_with(runs, name)?.is_none()
    {
        marks::check_name(runs, name)?;
    }
    tags.iter().try_for_each(|tag| marks::check_tag(tag))
}

/// The run with that name, if it failed, was interrupted or killed, and is not kept.
fn failed_with(runs: &Path, name: &str) -> Result<Option<String>, Failure> {
    let Some(id) = marks::named(runs, name)? else {
        return Ok(None);
    };
    let has_failed = history::load(runs, &id).is_ok_and(|run| {
        matches!(
            run.status,
            RunStatus::Failed | RunStatus::Interrupted | RunStatus::Killed
        )
    });
    let is_kept = marks::read(runs, &id).is_ok_and(|marks| marks.kept);
    Ok((has_failed && !is_kept).then_some(id))
}

/// Marks a new run. If another run has taken the name in the meantime, the directory of the new run is
/// removed.
pub(crate) fn begin(runs: &Path, id: &str, name: Option<&str>, tags: &[String]) -> Result<(), Failure> {
    if name.is_none() && tags.is_empty() {
        return Ok(());
    }
    if let Some(name) = name
        && let Some(failed) = failed_with(runs, name)?
    {
        marks::edit(runs, &failed, |marks| {
            // Unless another command has just renamed it.
            if marks.name.as_deref() == Some(name) {
                marks.name = None;
            }
        })?;
    }
    let marked = marks::edit(runs, id, |marks| {
        marks.name = name.map(ToOwned::to_owned);
        marks.tags.extend(tags.iter().cloned());
    });
    if marked.is_err() {
        let _ = std::fs::remove_dir_all(runs.join(id));
    }
    marked.map(drop)
}

/// The ids of the kept runs.
///
/// # Errors
/// When these cannot be determined, or the needs of one of them: nothing may be removed then.
pub(crate) fn kept(marks: &AllMarks, runs: &[Run]) -> Result<Vec<String>, Failure> {
    if let Some(damaged) = marks.damaged.values().next() {
        return Err(damaged.clone());
    }
    let kept = marks.of.iter().filter(|(_, marks)| marks.kept);
    let kept: Vec<String> = kept.map(|(id, _)| id.clone()).collect();
    match kept.iter().find(|id| !runs.iter().any(|run| run.id == **id)) {
        Some(id) => Err(
            Failure::machine(format!("run {id} is kept, but its events cannot be read")).hint(format!(
                "nothing was removed; `runner runs unkeep {id}` removes its protection"
            )),
        ),
        None => Ok(kept),
    }
}
