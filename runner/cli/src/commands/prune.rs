//! `runner runs rm` and `runner runs prune`: removal of runs from the history.

use crate::args::{PruneArgs, RmArgs};
use crate::output;
use crate::session::Session;
use runner_engine::{Failure, text};
use runner_history::policies::Registry;
use runner_history::{self as history, AllMarks, Run, marks};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::SystemTime;

/// Removes the named runs.
pub(crate) fn rm(session: &Session, args: &RmArgs) -> Result<(), Failure> {
    let folder = session.home(None).join("runs");
    let ids: Result<BTreeSet<String>, Failure> =
        args.runs.iter().map(|name| history::resolve(&folder, name)).collect();
    let ids = ids?;
    let registered = Registry::new(&session.home(None)).kept()?;
    for id in &ids {
        if registered.runs.contains(id) {
            return Err(
                Failure::usage(format!("run {id} made a registered policy that an alias points to")).hint(
                    "nothing was removed; `runner policy list` shows it, and `runner policy promote` \
                    points the alias elsewhere",
                ),
            );
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
    let registered = Registry::new(&session.home(None)).kept()?;
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
            vec![
                run.id.clone(),
                run.pipeline.clone(),
                run.status.name().to_owned(),
                started,
            ]
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
