//! `runner runs rm` and `runner runs prune`: removal of runs from the history.

use crate::complete::{candidates, completed};
use crate::output;
use crate::session::Session;
use crate::values::age;
use clap::Args;
use runner_engine::{Failure, row, text};
use runner_history::paper;
use runner_history::{self as history, AllMarks, Run, marks};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use std::time::SystemTime;

/// Remove runs from the history: their events, metrics, logs and reports.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
A run that is running or kept is refused, and one whose artifacts another run uses.

Example:
  runner runs rm 20261120T213045-k3f9")]
pub(crate) struct RmArgs {
    /// The runs: ids, unique parts of their beginning or end, or names.
    #[arg(required = true, value_name = "RUN", add = completed(candidates::runs))]
    pub runs: Vec<String>,
    /// Only print what would be removed.
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

/// Remove old runs from the history.
///
/// Runs with a name, a tag or `keep` stay.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Runs that are running are not removed, nor those whose artifacts a remaining run uses. With both options \
a run is removed if it is old and not among the last ones.

Examples:
  runner runs prune --keep 100
  runner runs prune --older-than 30d --dry-run
  runner runs prune --keep 20 --older-than 30d && runner cache gc")]
pub(crate) struct PruneArgs {
    /// Keep this many of the last runs.
    #[arg(long, value_name = "N", required_unless_present = "older_than")]
    pub keep: Option<usize>,
    /// Remove only runs that began longer ago than this: `90s`, `2h`, `30d`.
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub older_than: Option<Duration>,
    /// Only print what would be removed.
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

/// Removes the named runs.
pub(crate) fn rm(session: &Session, args: &RmArgs) -> Result<(), Failure> {
    let folder = session.home(None).join("runs");
    let ids: Result<BTreeSet<String>, Failure> =
        args.runs.iter().map(|name| history::resolve(&folder, name)).collect();
    let ids = ids?;
    let registered = paper::kept(&session.home(None))?;
    for id in &ids {
        if registered.runs.contains(id) {
            return Err(Failure::usage(format!(
                "run {id} made a policy that an alias points to, or a paper account acts by"
            ))
            .hint(
                "nothing was removed; `runner policy list` and `runner paper show` show it, and `runner \
                    policy promote` points the alias elsewhere",
            ));
        }
        if marks::read(&folder, id)?.kept {
            return Err(Failure::usage(format!("run {id} is kept")).hint(format!(
                "nothing was removed; `runner runs unkeep {id}` removes its protection"
            )));
        }
    }
    let all = history::list(&folder)?;
    let (removed, stay): (Vec<&Run>, Vec<&Run>) = all.iter().partition(|run| ids.contains(&run.id));
    for run in stay {
        if let Some(needed) = run.earlier_runs().find(|id| ids.contains(*id)) {
            return Err(
                Failure::usage(format!("run {} uses an artifact of run {needed}", run.id)).hint(format!(
                    "nothing was removed; `runner runs rm {needed} {}` removes both",
                    run.id
                )),
            );
        }
    }
    // A run with unreadable events is removed like any other.
    let ids: Vec<String> = ids.into_iter().collect();
    finish(session, &folder, &ids, &removed, args.dry_run)
}

/// Removes runs by count and age.
pub(crate) fn prune(session: &Session, args: &PruneArgs) -> Result<(), Failure> {
    let folder = session.home(None).join("runs");
    let all = history::list(&folder)?;
    let marks = AllMarks::read(&folder)?;
    let now = SystemTime::now();
    let registered = paper::kept(&session.home(None))?;
    let is_excluded = |run: &Run, from_last: usize| {
        let age = now.duration_since(run.started.into()).unwrap_or_default();
        registered.runs.contains(&run.id)
            || args.keep.is_some_and(|keep| from_last < keep)
            || args.older_than.is_some_and(|limit| age < limit)
    };
    let removed = history::removable(&all, &marks, is_excluded);
    let ids: Vec<String> = removed.iter().map(|run| run.id.clone()).collect();
    finish(session, &folder, &ids, &removed, args.dry_run)
}

fn finish(
    session: &Session,
    folder: &Path,
    ids: &[String],
    runs: &[&Run],
    dry_run: bool,
) -> Result<(), Failure> {
    let bytes: u64 = ids.iter().map(|id| history::size(&folder.join(id))).sum();
    if !dry_run {
        history::remove(folder, ids)?;
    }
    if session.json {
        return output::print_json(&json!({ "dry_run": dry_run, "runs": ids, "bytes": bytes }));
    }
    let rows: Vec<Vec<String>> = runs
        .iter()
        .map(|run| {
            let started = run.started.format("%Y-%m-%d %H:%M UTC").to_string();
            row![run.id, run.pipeline, run.status.name(), started]
        })
        .collect();
    let mut out = String::new();
    if !rows.is_empty() {
        out = text::table(&["run", "pipeline", "status", "started"], &rows, &[]);
    }
    out.push_str(&format!(
        "{} ({}) {}; `runner cache gc` frees what only they needed\n",
        text::count(ids.len(), "run"),
        text::size(bytes),
        if dry_run { "would be removed" } else { "removed" }
    ));
    output::print(&out)
}
