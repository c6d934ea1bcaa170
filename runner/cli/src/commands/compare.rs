//! `runner compare`.

use crate::complete::{candidates, completed};
use crate::output;
use crate::session::Session;
use clap::{Args, ValueEnum};
use runner_engine::Failure;
use runner_history::compare::{self as compared, Comparison, Options};
use runner_history::{Library, Question};
use runner_report as report;
use std::path::Path;
use std::path::PathBuf;

const COMPARE_EXAMPLES: &str = "\
Examples:
  runner compare latest~1 latest               # the last run and the one before
  runner compare latest                        # the points of a matrix, grouped over seeds
  runner compare baseline 20261120T213045-k3f9 --html
  runner compare 'sweep/train[lr=0.001]' 'sweep/train[lr=0.01]' --metric episodic_return
  runner compare --where 'tag = sweep' --metric evaluate.sharpe --csv > sweep.csv

Points that differ only in `seed` (an axis, a parameter or a field of a stage's configuration) form a \
group, whose metrics are shown as mean ± sample standard deviation of n values. Missing and non-finite \
values are not counted in n; a computation that occurs in several runs is counted once.";

/// Compare runs or points of a matrix: parameters and metrics.
///
/// Parameters that differ, and metrics with mean and standard deviation over seeds.
#[derive(Args, Clone, Debug)]
#[command(after_help = COMPARE_EXAMPLES)]
pub(crate) struct CompareArgs {
    /// RUN, `RUN[seed=1]`, RUN/STAGE or `RUN/STAGE[seed=1]`. RUN is an id, a unique prefix or suffix of one,
    /// a name, `latest`, or `latest~1` for the run before it. A matrix stage stands for all of its points.
    #[arg(value_name = "RUN", required_unless_present = "filter", add = completed(candidates::runs))]
    pub runs: Vec<String>,
    /// Also compare all runs that match this expression; see `runner runs --help` for its syntax.
    #[arg(long = "where", value_name = "EXPRESSION")]
    pub filter: Option<String>,
    /// Show only this metric (repeatable); the first one is the sort key [default: the summary metrics of
    /// evaluations and trainings].
    #[arg(long, value_name = "METRIC")]
    pub metric: Vec<String>,
    /// The direction in which the first metric improves [default: by its name].
    #[arg(long, value_enum)]
    pub better: Option<Better>,
    /// Treat this axis or parameter as repetitions, like `seed` (repeatable).
    #[arg(long, value_name = "AXIS")]
    pub over: Vec<String>,
    /// Show every point separately, without grouping repetitions.
    #[arg(long, conflicts_with = "over")]
    pub each: bool,
    /// Show every parameter and metric, also those that are equal everywhere.
    #[arg(long)]
    pub all: bool,
    /// Print CSV with full precision.
    #[arg(long, conflicts_with_all = ["markdown", "json"])]
    pub csv: bool,
    /// Print a Markdown table.
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Also write an HTML page with learning curves [default: compare.html].
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "compare.html")]
    pub html: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Better {
    /// Higher values are better.
    Higher,
    /// Lower values are better.
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
        report::replace(page, &report::comparison_page(&comparison))
            .map_err(|err| Failure::at("cannot write", page)(err).hint("give another file: `--html FILE`"))?;
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
