//! `runner runs` and `runner report`.

use super::labels::LabelCommand;
use super::labels::{self, Marked};
use super::prune;
use crate::complete::{candidates, completed};
use crate::output;
use crate::session::Session;
use cache::Store;
use clap::{Args, Subcommand};
use runner_engine::{Failure, StageStatus, row, text};
use runner_history::{Chosen, Library, Question};
use runner_report as page;
use serde_json::{Map, Value};

/// Write the HTML report of a run to its directory.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner report latest
  runner report latest --chart equity > equity.svg
  runner report latest --chart charts/episodic_return > returns.svg")]
pub(crate) struct ReportArgs {
    /// The run: an id, a unique prefix or suffix of one, a name, `latest`, or `latest~1`.
    #[arg(add = completed(candidates::runs))]
    pub run: String,
    /// Print one chart as SVG instead: `equity`, `drawdown`, or a metric.
    #[arg(long, value_name = "NAME")]
    pub chart: Option<String>,
}

const RUNS_EXAMPLES: &str = "\
Examples:
  runner runs
  runner runs --last 5 --json
  runner runs --where 'evaluate.sharpe > 1 and not tag = bad' --sort=-evaluate.sharpe
  runner runs --where 'pipeline = cartpole and age < 2d' --show params.seed,train.episodic_return
  runner runs name latest baseline
  runner runs tag baseline sweep lr
  runner runs keep baseline
  runner runs prune --keep 100 --older-than 30d

Fields: id, pipeline, name, tag, kept, status, started, age, duration, params.NAME, STAGE.METRIC, \
STAGE[seed=1].METRIC, STAGE.with.KEY, STAGE.status, STAGE.seconds; for the points of a matrix also \
mean(X), sd(X), min(X), max(X), count(X).
Operators: = != < <= > >= and ~ (contains the text), combined with and, or, not and parentheses. For \
the points of a matrix, one match is sufficient. A field by itself matches runs that have it.
Values: 1.5, done, 'two words', 2026-11-20, 2026-11-20T21:30 (UTC), 90s, 2h, 5d.";

/// List and filter the runs, and name, tag or keep them.
#[derive(Args, Clone, Debug)]
#[command(after_help = RUNS_EXAMPLES)]
#[command(args_conflicts_with_subcommands = true, subcommand_value_name = "COMMAND")]
pub(crate) struct RunsArgs {
    /// The number of runs to list: the last ones, or with `--sort` the first ones.
    #[arg(long, visible_alias = "limit", value_name = "N", default_value_t = 20)]
    pub last: usize,
    /// List only runs that match this expression.
    #[arg(long = "where", value_name = "EXPRESSION")]
    pub filter: Option<String>,
    /// Sort by this field, `-FIELD` in descending order (repeatable); runs without a value come last.
    #[arg(long, value_name = "FIELD", allow_hyphen_values = true)]
    pub sort: Vec<String>,
    /// Also show these fields, separated by commas.
    #[arg(long, value_name = "FIELDS")]
    pub show: Vec<String>,
    #[command(subcommand)]
    pub command: Option<RunsCommand>,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum RunsCommand {
    #[command(flatten)]
    Label(LabelCommand),
    Rm(prune::RmArgs),
    Prune(prune::PruneArgs),
}

pub(crate) fn runs(session: &Session, args: &RunsArgs) -> Result<(), Failure> {
    match &args.command {
        None => {}
        Some(RunsCommand::Label(command)) => return labels::mark(session, command),
        Some(RunsCommand::Rm(args)) => return prune::rm(session, args),
        Some(RunsCommand::Prune(args)) => return prune::prune(session, args),
    }
    let home = session.home(None);
    let question = Question::new(args.filter.as_deref(), &args.sort, &args.show)?;
    let library = Library::read(
        &home.join("runs"),
        question.is_plain().then_some(args.last),
        &mut output::warn,
    )?;
    // Metrics are in the store; a plain list needs none.
    let store = (!question.shown().is_empty() && home.join("format").is_file())
        .then(|| Store::open(&home))
        .transpose()?;
    let mut chosen = library.choose(&question, store.as_ref())?;
    let found = chosen.len();
    if question.sort.is_empty() {
        chosen.drain(..found.saturating_sub(args.last));
    } else {
        chosen.truncate(args.last);
    }
    if session.json {
        return output::print_json(&as_json(&chosen, &question));
    }
    if question.sort.is_empty() {
        chosen.reverse();
    }
    output::print(&table(&chosen, &question))
}

fn as_json(chosen: &[Chosen<'_>], question: &Question) -> Value {
    let shown = question.shown();
    let one = |chosen: &Chosen<'_>| {
        let marked = Marked {
            run: chosen.run,
            marks: chosen.marks,
        };
        let mut value = serde_json::to_value(marked).unwrap_or_default();
        if !shown.is_empty() {
            let cells = shown
                .iter()
                .zip(&chosen.cells)
                .map(|(key, cell)| (key.text.clone(), cell.to_json()));
            value["fields"] = Value::Object(cells.collect::<Map<_, _>>());
        }
        value
    };
    chosen.iter().map(one).collect()
}

fn table(chosen: &[Chosen<'_>], question: &Question) -> String {
    let shown = question.shown();
    let named = chosen.iter().any(|chosen| chosen.marks.name.is_some());
    let tagged = chosen.iter().any(|chosen| !chosen.marks.tags.is_empty());
    let kept = chosen.iter().any(|chosen| chosen.marks.kept);
    let failed = chosen.iter().any(|chosen| chosen.run.count(StageStatus::Failed) > 0);
    // Fields that were asked for need the room; the id tells the time, too.
    let started = shown.is_empty();
    let mut head = vec!["run", "pipeline", "status", "time"];
    head.extend(started.then_some(["cached", "ran"]).into_iter().flatten());
    head.extend(failed.then_some("failed"));
    let numbers = head.len();
    head.extend(started.then_some("started"));
    head.extend(named.then_some("name"));
    head.extend(tagged.then_some("tags"));
    head.extend(kept.then_some("kept"));
    let right: Vec<usize> = (3..numbers).chain(head.len()..head.len() + shown.len()).collect();
    head.extend(shown.iter().map(|key| key.text.as_str()));
    let rows: Vec<Vec<String>> = chosen
        .iter()
        .map(|chosen| {
            let run = chosen.run;
            let mut row = row![run.id, run.pipeline, run.status.name(), text::duration(run.seconds),];
            let counts = started
                .then_some([StageStatus::Cached, StageStatus::Ran])
                .into_iter()
                .flatten();
            row.extend(counts.map(|status| run.count(status).to_string()));
            row.extend(failed.then(|| run.count(StageStatus::Failed).to_string()));
            row.extend(started.then(|| run.started.format("%Y-%m-%d %H:%M UTC").to_string()));
            row.extend(named.then(|| chosen.marks.name.clone().unwrap_or_default()));
            row.extend(tagged.then(|| chosen.marks.tags.iter().cloned().collect::<Vec<_>>().join(", ")));
            row.extend(kept.then(|| if chosen.marks.kept { "yes" } else { "" }.to_owned()));
            row.extend(chosen.cells.iter().map(|cell| cell.shown()));
            row
        })
        .collect();
    text::table(&head, &rows, &right)
}

pub(crate) fn report(session: &Session, args: &ReportArgs) -> Result<(), Failure> {
    let archive = session.archive()?;
    let run = archive.run(&args.run)?;
    if let Some(chart) = &args.chart {
        let svg = page::plot(&run, &archive.store, chart)?;
        if session.json {
            return output::print_json(&serde_json::json!({ "run": run.id, "chart": chart, "svg": svg }));
        }
        return output::print(&svg);
    }
    let path = page::write(&run, &archive.runs, &archive.store)?;
    if session.json {
        return output::print_json(&serde_json::json!({ "run": run.id, "report": path }));
    }
    output::print(&format!("{}\n", path.display()))
}
