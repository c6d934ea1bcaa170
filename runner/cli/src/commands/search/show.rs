//! `runner search show`.

use crate::complete::{candidates, completed};
use crate::output;
use crate::session::Session;
use clap::Args;
use runner_engine::{Failure, text};
use runner_report::search::View;
use runner_search::record;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Show a search: trials, rungs, importance, cost.
///
/// Without a name, the only search of the home, or a list of all.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner search show
  runner search show tune-3fa94c81
  runner search show latest --json")]
pub(crate) struct SearchShowArgs {
    /// The search: an id or a unique part of one, a run that searched, or a pipeline, whose newest it is.
    #[arg(add = completed(candidates::searches))]
    pub search: Option<String>,
    /// The number of trials in the table, the best first.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub trials: usize,
}

/// The width of the text, in characters.
const WIDTH: usize = 100;

pub(super) fn show(session: &Session, args: &SearchShowArgs) -> Result<(), Failure> {
    let home = session.home(None);
    let name = args.search.as_deref();
    let all = if name.is_none() {
        record::list(&home)?
    } else {
        Vec::new()
    };
    if all.len() > 1 {
        let views: Vec<View> = all.into_iter().map(|record| View::new(&home, record)).collect();
        return list(session, &views);
    }
    let view = super::named(session, name)?;
    match session.json {
        true => output::print_json(&view.json()),
        false => output::print(&shown(&view, args.trials)),
    }
}

/// All searches, the newest first.
fn list(session: &Session, views: &[View]) -> Result<(), Failure> {
    if session.json {
        let of = |view: &View| {
            let header = &view.record.header;
            json!({
                "id": header.id,
                "pipeline": header.pipeline,
                "file": header.file,
                "state": view.state(),
                "trials": view.trials.len(),
                "best": view.best().first().map(|row| row.trial),
                "run": view.record.runs.last().map(|(ran, _)| &ran.run),
            })
        };
        let searches: Vec<Value> = views.iter().map(of).collect();
        return output::print_json(&json!({ "searches": searches }));
    }
    output::print(&View::list(views).text())
}

fn shown(view: &View, most: usize) -> String {
    let header = &view.record.header;
    let seeds = text::count(header.search.seeds.count, "seed");
    let mut out = format!(
        "search {} of {} ({})\n{}, {seeds}\n{}, started {}\n\n",
        header.id,
        header.pipeline,
        header.file.display(),
        view.objectives().join(", "),
        view.state(),
        view.record.started.format("%Y-%m-%d %H:%M:%S UTC")
    );
    for (name, text) in view.facts() {
        out.push_str(&wrapped(&format!("{name:<12}"), &text));
    }
    if view.rungs.len() > 1 {
        let _ = write!(out, "\n{}", view.rung_table().text());
        out.push_str(&wrapped("", View::OF_RUNGS));
    }
    let (best, left_out) = view.best_table(most, WIDTH);
    if !best.rows.is_empty() {
        let _ = write!(out, "\n{}", best.text());
    }
    if !left_out.is_empty() {
        out.push_str(&wrapped("not shown: ", &left_out.join(", ")));
    }
    out
}

/// A text in lines of [`WIDTH`] characters after a name, below whose end the later lines begin.
fn wrapped(name: &str, text: &str) -> String {
    let indent = name.chars().count();
    let mut lines = vec![name.to_owned()];
    for word in text.split(' ') {
        let line = lines.last().map_or(0, |line| line.chars().count());
        if line > indent && line + 1 + word.chars().count() > WIDTH {
            lines.push(" ".repeat(indent));
        }
        if let Some(line) = lines.last_mut() {
            if line.chars().count() > indent {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}
