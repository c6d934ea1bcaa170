//! `runner compare`.

use crate::args::{Better, CompareArgs};
use crate::output;
use crate::session::Session;
use runner_engine::Failure;
use runner_history::compare::{self as compared, Comparison, Options};
use runner_history::{Library, Question};
use runner_report as report;
use std::path::Path;

pub(crate) fn compare(session: &Session, args: &CompareArgs) -> Result<(), Failure> {
    if let Some(page) = &args.html {
        check_page(page)?;
    }
    let archive = session.archive()?;
    let mut names = args.runs.clone();
    if let Some(filter) = &args.filter {
        let question = Question::new(Some(filter), &[], &[])?;
        let library = Library::read(&archive.runs, None, &mut output::warn)?;
        let chosen = library.choose(&question, Some(&archive.store))?;
        if chosen.is_empty() && names.is_empty() {
            return Err(
                Failure::usage(format!("no run matches `{filter}`")).hint("`runner runs` lists the runs")
            );
        }
        names.extend(chosen.iter().map(|chosen| chosen.run.id.clone()));
    }
    let points = compared::select(&archive.runs, &archive.store, &names)?;
    let comparison = Comparison::new(
        points,
        &Options {
            metrics: args.metric.clone(),
            over: args.over.clone(),
            each: args.each,
            all: args.all,
            higher_is_better: args.better.map(|better| better == Better::Higher),
        },
    )?;
    if let Some(page) = &args.html {
        write(page, &report::comparison_page(&comparison))?;
    }
    if session.json {
        let mut json = compared::json(&comparison);
        if let Some(page) = &args.html {
            json["page"] = serde_json::json!(page);
        }
        return output::print_json(&json);
    }
    if args.csv {
        return output::print_document(&report::csv(&comparison));
    }
    if args.markdown {
        return output::print(&report::markdown(&comparison));
    }
    output::print(&report::text(&comparison))?;
    match &args.html {
        Some(page) => output::print(&format!("page: {}\n", page.display())),
        None => Ok(()),
    }
}

/// Rejects a value of `--html` that is not an HTML file, such as a run.
fn check_page(page: &Path) -> Result<(), Failure> {
    let is_page = |extension: &std::ffi::OsStr| {
        extension.eq_ignore_ascii_case("html") || extension.eq_ignore_ascii_case("htm")
    };
    match page.extension() {
        Some(extension) if is_page(extension) => Ok(()),
        _ => Err(
            Failure::usage(format!("`--html {}` is not an HTML file", page.display()))
                .hint("the file name must end in `.html`; to name a run, put `--html` after the runs"),
        ),
    }
}

/// Writes the page atomically.
fn write(path: &Path, page: &str) -> Result<(), Failure> {
    let failed = |err: &dyn std::error::Error| {
        Failure::caused(format!("cannot write `{}`", path.display()), err)
            .hint("give another file: `--html FILE`")
    };
    let new = path.with_extension("html.new");
    let written = std::fs::write(&new, page).and_then(|()| std::fs::rename(&new, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    written.map_err(|err| failed(&err))
}
