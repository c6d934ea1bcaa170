//! `runner compare`.

use super::choose::{Library, Question};
use super::output;
use super::session::Session;
use crate::compare::{self as compared, Comparison, Options};
use crate::error::Failure;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

pub(crate) const EXAMPLES: &str = "\
Examples:
  runner compare latest                        # the points of a matrix, seeds in groups
  runner compare baseline 20261120T213045-k3f9 --html
  runner compare 'sweep/train[lr=0.001]' 'sweep/train[lr=0.01]' --metric episodic_return
  runner compare --where 'tag = sweep' --metric evaluate.sharpe --csv > sweep.csv

Points that are equal in everything but what is called `seed` (an axis, a parameter, a stage's
configuration) are one group: its metrics are given as mean ± sample standard deviation of n values.
A value that is missing or not finite counts for nothing, and n says so; the same computation in two
runs counts once.";

#[derive(Args, Clone, Debug)]
pub(crate) struct CompareArgs {
    /// RUN, `RUN[seed=1]`, RUN/STAGE or `RUN/STAGE[seed=1]`. RUN is an id, a unique part of its beginning or end, the name it
    /// was given, or `latest`. A matrix stands for its points.
    #[arg(value_name = "RUN", required_unless_present = "filter")]
    pub runs: Vec<String>,
    /// Compare all runs for which this holds, too; `runner runs --help` says how it is written.
    #[arg(long = "where", value_name = "EXPRESSION")]
    pub filter: Option<String>,
    /// Show this metric only (repeatable), and sort by the first [default: those that sum up evaluations and trainings].
    #[arg(long, value_name = "METRIC")]
    pub metric: Vec<String>,
    /// Which values of the first metric are better [default: by its name].
    #[arg(long, value_enum)]
    pub better: Option<Better>,
    /// Take this axis or parameter for repetitions, too, as `seed` is (repeatable).
    #[arg(long, value_name = "AXIS")]
    pub over: Vec<String>,
    /// Let every point stand for itself, without groups.
    #[arg(long, conflicts_with = "over")]
    pub each: bool,
    /// Show parameters and metrics that are the same everywhere, too.
    #[arg(long)]
    pub all: bool,
    /// Print CSV, numbers to the last digit.
    #[arg(long, conflicts_with_all = ["markdown", "json"])]
    pub csv: bool,
    /// Print a Markdown table.
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Write a page with learning curves, too [default: compare.html].
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "compare.html")]
    pub html: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Better {
    /// The highest is best.
    Higher,
    /// The lowest is best.
    Lower,
}

pub(crate) fn compare(session: &Session, args: &CompareArgs) -> Result<(), Failure> {
    if let Some(page) = &args.html {
        check_page(page)?;
    }
    let archive = session.archive()?;
    let mut names = args.runs.clone();
    if let Some(filter) = &args.filter {
        let question = Question::new(Some(filter), &[], &[])?;
        let library = Library::read(&archive.runs, None)?;
        let chosen = library.choose(&question, Some(&archive.store))?;
        if chosen.is_empty() && names.is_empty() {
            return Err(Failure::usage(format!("there is no run for which `{filter}` holds"))
                .hint("`runner runs` lists the runs"));
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
        write(page, &compared::page(&comparison))?;
    }
    if session.json {
        let mut json = compared::json(&comparison);
        if let Some(page) = &args.html {
            json["page"] = serde_json::json!(page);
        }
        return output::print_json(&json);
    }
    if args.csv {
        return output::print(&compared::csv(&comparison));
    }
    if args.markdown {
        return output::print(&compared::markdown(&comparison));
    }
    output::print(&compared::text(&comparison))?;
    match &args.html {
        Some(page) => output::print(&format!("page: {}\n", page.display())),
        None => Ok(()),
    }
}

/// A run that stands behind `--html` is no page.
fn check_page(page: &Path) -> Result<(), Failure> {
    let is_page =
        |extension: &std::ffi::OsStr| extension.eq_ignore_ascii_case("html") || extension.eq_ignore_ascii_case("htm");
    match page.extension() {
        Some(extension) if is_page(extension) => Ok(()),
        _ => Err(Failure::usage(format!("`--html {}` names no page", page.display()))
            .hint("a page's name ends in `.html`; where a run is meant, put `--html` behind the runs")),
    }
}

/// Whole or not at all.
fn write(path: &Path, page: &str) -> Result<(), Failure> {
    let failed = |err: &dyn std::error::Error| {
        Failure::caused(format!("cannot write `{}`", path.display()), err).hint("give another file: `--html FILE`")
    };
    let new = path.with_extension("html.new");
    let written = std::fs::write(&new, page).and_then(|()| std::fs::rename(&new, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    written.map_err(|err| failed(&err))
}
