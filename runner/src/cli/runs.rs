//! `runner runs` and `runner report`.

use super::args::{ReportArgs, RunsArgs};
use super::output;
use super::session::Session;
use crate::engine::StageStatus;
use crate::error::Failure;
use crate::{history, report as page, text};

pub(crate) fn runs(session: &Session, args: &RunsArgs) -> Result<(), Failure> {
    let runs = history::list(&session.home(None).join("runs"))?;
    let shown = &runs[runs.len().saturating_sub(args.last)..];
    if session.json {
        return output::print_json(&shown);
    }
    let rows: Vec<Vec<String>> = shown
        .iter()
        .rev()
        .map(|run| {
            vec![
                run.id.clone(),
                run.pipeline.clone(),
                run.status.name().to_owned(),
                text::duration(run.seconds),
                run.count(StageStatus::Cached).to_string(),
                run.count(StageStatus::Ran).to_string(),
                run.count(StageStatus::Failed).to_string(),
                run.started.format("%Y-%m-%d %H:%M UTC").to_string(),
            ]
        })
        .collect();
    output::print(&text::table(
        &[
            "run", "pipeline", "status", "time", "cached", "ran", "failed", "started",
        ],
        &rows,
        &[3, 4, 5, 6],
    ))
}

pub(crate) fn report(session: &Session, args: &ReportArgs) -> Result<(), Failure> {
    let archive = session.archive()?;
    let id = history::resolve(&archive.runs, &args.run)?;
    let run = history::load(&archive.runs, &id)?;
    let path = page::write(&run, &archive.runs, &archive.store)?;
    if session.json {
        return output::print_json(&serde_json::json!({ "run": id, "report": path }));
    }
    output::print(&format!("{}\n", path.display()))
}
