//! `runner check`.

use crate::args::{CheckCommand, LookaheadArgs};
use crate::lookahead::{self, Report};
use crate::session::Session;
use crate::{interrupt, output};
use datasets::Date;
use runner_engine::{Failure, exit, text};
use runner_report::reporter::Verbosity;
use std::io::IsTerminal as _;

pub(crate) fn check(session: &Session, command: &CheckCommand) -> Result<u8, Failure> {
    match command {
        CheckCommand::Lookahead(args) => lookahead(session, args),
    }
}

fn lookahead(session: &Session, args: &LookaheadArgs) -> Result<u8, Failure> {
    let at: Option<Date> = match &args.at {
        Some(text) => Some(text.parse().map_err(Failure::usage)?),
        None => None,
    };
    let control = interrupt::control()?;
    let mut project = session.project(&args.pipeline)?;
    let _guard = project.store.guard()?;
    let mut options = project.options(session, "lookahead");
    // Neither a run nor its log is kept.
    let logs = tempfile::tempdir().map_err(|err| Failure::caused("cannot create a temporary directory", &err))?;
    options.logs = logs.path().to_owned();
    let talks = match session.verbosity {
        Verbosity::Quiet => false,
        Verbosity::Normal => std::io::stderr().is_terminal(),
        Verbosity::Verbose => true,
    };
    let report = lookahead::check(
        &mut project.pipeline,
        &project.chosen,
        &project.store,
        at,
        &options,
        &control,
        &mut |what: &str| {
            if talks {
                output::say(what);
            }
        },
    )?;
    project.store.flush()?;
    if session.json {
        output::print_json(&report)?;
    } else {
        output::print(&page(&report))?;
    }
    Ok(if report.moved.is_empty() {
        exit::DONE
    } else {
        exit::STAGE_FAILED
    })
}

fn page(report: &Report) -> String {
    let mut out = String::new();
    let rows: Vec<Vec<String>> = report
        .sources
        .iter()
        .map(|source| vec![source.name.clone(), source.rows.to_string(), source.stages.to_string()])
        .collect();
    out.push_str(&text::table(
        &["source", "rows perturbed", "stages run again"],
        &rows,
        &[1, 2],
    ));
    if !report.moved.is_empty() {
        out.push_str(&format!("\nchanged although dated {} or before:\n", report.at));
        let rows: Vec<Vec<String>> = report
            .moved
            .iter()
            .map(|moved| {
                let about = [
                    moved.date.map(|date| date.to_string()).unwrap_or_default(),
                    moved.about.clone(),
                ];
                vec![
                    moved.stage.clone(),
                    moved.output.clone(),
                    moved.column.clone(),
                    moved.row.to_string(),
                    about.join(" ").trim().to_owned(),
                    format!("{} -> {}", moved.was, moved.became),
                    moved.rows.to_string(),
                    moved.source.clone(),
                    moved.from.join(", "),
                ]
            })
            .collect();
        let header = [
            "stage",
            "output",
            "column",
            "row",
            "of",
            "value",
            "rows",
            "source",
            "inherited from",
        ];
        out.push_str(&text::table(&header, &rows, &[3, 6]));
    }
    if !report.unchecked.is_empty() {
        out.push_str("\nnot checked:\n");
        for unchecked in &report.unchecked {
            let what: Vec<&str> = [&unchecked.stage, &unchecked.what]
                .into_iter()
                .map(String::as_str)
                .filter(|part| !part.is_empty())
                .collect();
            out.push_str(&match what.is_empty() {
                true => format!("  {}: {}\n", unchecked.source, unchecked.reason),
                false => format!(
                    "  {}: {} (with other {})\n",
                    what.join("."),
                    unchecked.reason,
                    unchecked.source
                ),
            });
        }
    }
    for (stage, reason) in &report.skipped {
        out.push_str(&format!("excluded: {stage}: {reason}\n"));
    }
    let compared = format!(
        "{} of {}, {} up to {}",
        text::count(report.tables, "table"),
        text::count(report.sources.len(), "changed source"),
        text::count(usize::try_from(report.rows).unwrap_or(usize::MAX), "row"),
        report.at
    );
    let own: std::collections::BTreeSet<&str> = report
        .moved
        .iter()
        .filter(|moved| moved.from.is_empty())
        .map(|moved| moved.stage.as_str())
        .collect();
    let names: Vec<&str> = own.into_iter().collect();
    out.push_str(&match report.moved.is_empty() {
        true => format!("no look-ahead found: {compared}\n"),
        false => format!("look-ahead in {}: {compared}\n", names.join(", ")),
    });
    out
}
