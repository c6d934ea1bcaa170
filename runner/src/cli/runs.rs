//! `runner runs` and `runner report`.

use super::args::ReportArgs;
use super::choose::{Chosen, Library, Question};
use super::marks::{self, MarkCommand, Marked};
use super::prune::{self, PruneArgs, RmArgs};
use super::output;
use super::session::Session;
use crate::engine::StageStatus;
use crate::error::Failure;
use crate::{history, report as page, text};
use cache::Store;
use clap::{Args, Subcommand};
use serde_json::{Map, Value};

pub(crate) const EXAMPLES: &str = "\
Examples:
  runner runs
  runner runs --last 5 --json
  runner runs --where 'evaluate.sharpe > 1 and not tag = bad' --sort=-evaluate.sharpe
  runner runs --where 'pipeline = cartpole and age < 2d' --show params.seed,train.episodic_return
  runner runs name latest baseline
  runner runs tag baseline sweep lr
  runner runs keep baseline
  runner runs prune --keep 100 --older-than 30d

Fields: id, pipeline, name, tag, kept, status, started, age, duration, params.NAME, STAGE.METRIC,
STAGE[seed=1].METRIC, STAGE.with.KEY, STAGE.status, STAGE.seconds; of the points of a matrix also
mean(X), sd(X), min(X), max(X), count(X).
Comparisons: = != < <= > >= and ~ (holds the text), joined by and, or, not and parentheses. Of the
points of a matrix, one that fits is enough. A field alone holds where the run has it.
Values: 1.5, done, 'two words', 2026-11-20, 2026-11-20T21:30 (UTC), 90s, 2h, 5d.";

#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_value_name = "COMMAND")]
pub(crate) struct RunsArgs {
    /// How many to list: the last ones, or the first ones of what is sorted.
    #[arg(long, visible_alias = "limit", value_name = "N", default_value_t = 20)]
    pub last: usize,
    /// Only runs for which this holds.
    #[arg(long = "where", value_name = "EXPRESSION")]
    pub filter: Option<String>,
    /// Sort by this field, `-FIELD` from the greatest on (repeatable); what has no value comes last.
    #[arg(long, value_name = "FIELD", allow_hyphen_values = true)]
    pub sort: Vec<String>,
    /// Show these fields too, with commas between them.
    #[arg(long, value_name = "FIELDS")]
    pub show: Vec<String>,
    #[command(subcommand)]
    pub command: Option<RunsCommand>,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum RunsCommand {
    #[command(flatten)]
    Mark(MarkCommand),
    /// Remove runs from the history: their events, metrics, logs and reports.
    #[command(after_help = "\
A run that is running or kept is refused, and one whose artifacts another run uses.

Example:
  runner runs rm 20261120T213045-k3f9")]
    Rm(RmArgs),
    /// Remove all runs but the last ones, the young ones, and those with a name, a tag or `keep`.
    #[command(after_help = "\
Runs that are running stay, and those whose artifacts a run that stays uses. With both options a run
must be old and not among the last ones.

Examples:
  runner runs prune --keep 100
  runner runs prune --older-than 30d --dry-run
  runner runs prune --keep 20 --older-than 30d && runner cache gc")]
    Prune(PruneArgs),
}

pub(crate) fn runs(session: &Session, args: &RunsArgs) -> Result<(), Failure> {
    match &args.command {
        None => {}
        Some(RunsCommand::Mark(command)) => return marks::mark(session, command),
        Some(RunsCommand::Rm(args)) => return prune::rm(session, args),
        Some(RunsCommand::Prune(args)) => return prune::prune(session, args),
    }
    let home = session.home(None);
    let question = Question::new(args.filter.as_deref(), &args.sort, &args.show)?;
    let library = Library::read(&home.join("runs"), question.is_plain().then_some(args.last))?;
    // Metrics are in the store; a mere list does without.
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
    let mut head = vec![
        "run", "pipeline", "status", "time", "cached", "ran", "failed", "started",
    ];
    head.extend(named.then_some("name"));
    head.extend(tagged.then_some("tags"));
    head.extend(kept.then_some("kept"));
    let right: Vec<usize> = (3..7).chain(head.len()..head.len() + shown.len()).collect();
    head.extend(shown.iter().map(|key| key.text.as_str()));
    let rows: Vec<Vec<String>> = chosen
        .iter()
        .map(|chosen| {
            let run = chosen.run;
            let mut row = vec![
                run.id.clone(),
                run.pipeline.clone(),
                run.status.name().to_owned(),
                text::duration(run.seconds),
                run.count(StageStatus::Cached).to_string(),
                run.count(StageStatus::Ran).to_string(),
                run.count(StageStatus::Failed).to_string(),
                run.started.format("%Y-%m-%d %H:%M UTC").to_string(),
            ];
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
    let id = history::resolve(&archive.runs, &args.run)?;
    let run = history::load(&archive.runs, &id)?;
    let path = page::write(&run, &archive.runs, &archive.store)?;
    if session.json {
        return output::print_json(&serde_json::json!({ "run": id, "report": path }));
    }
    output::print(&format!("{}\n", path.display()))
}
