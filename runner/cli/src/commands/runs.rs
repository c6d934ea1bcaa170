//! `runner runs` and `runner report`.

use super::labels::{self, Marked};
use super::prune;
use crate::args::{ReportArgs, RunsArgs, RunsCommand};
use crate::output;
use crate::session::Session;
use cache::Store;
use runner_engine::{Failure, StageStatus, text};
use runner_history::{self as history, Chosen, Library, Question};
use runner_report as page;
use serde_json::{Map, Value};

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
