//! The HTML report of a run: one self-contained file, rendered from the run's events and artifacts. The
//! report is not a cached stage.

use crate::evaluation::{Evaluation, Values, evaluation, summary_table};
use crate::figure_table::{self, Column};
use crate::figures::{Unit, shown};
use crate::fold::{Fold, contents};
use crate::html::{self, bytes, escape, escape_content, table};
use crate::paper::paper_account;
use crate::replace;
use crate::search::{self, View};
use crate::stage_graph::{counts, stage_graph, status_of};
use crate::{asked, data, glossary, programs, training};
use cache::Store;
use runner_engine::{Failure, row, text};
use runner_history::paper::Ledger;
use runner_history::{ComputedMetrics, Run, StageRun};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Writes `report.html` into the run's directory and returns its path. `runs` is the directory of all runs,
/// which has the times of stages that were cached in this run.
///
/// # Errors
/// Fails if the file cannot be written. A missing artifact is noted in the report.
pub fn write(run: &Run, runs: &Path, store: &Store) -> Result<PathBuf, Failure> {
    put(run, &sections(run, runs, store, None).unwrap_or_default())
}

/// Writes `report.html` as [`write`] does, unless rendering takes longer than `budget`.
pub fn write_within(
    run: &Run,
    runs: &Path,
    store: &Store,
    budget: Duration,
) -> Result<Option<PathBuf>, Failure> {
    let body = sections(run, runs, store, Some(Instant::now() + budget));
    body.map(|body| put(run, &body)).transpose()
}

fn put(run: &Run, body: &str) -> Result<PathBuf, Failure> {
    let path = run.dir.join("report.html");
    let page = html::page(&format!("{} · {}", run.pipeline, run.id), body);
    replace(&path, &page).map_err(Failure::at("cannot write", &path))?;
    Ok(path)
}

/// The page's body: what was asked and the answer first, then parts that are collapsed after a line that sums
/// them up. `None` when it is not rendered by the deadline.
fn sections(run: &Run, runs: &Path, store: &Store, deadline: Option<Instant>) -> Option<String> {
    let in_time = || deadline.is_none_or(|deadline| Instant::now() < deadline);
    let searched = runs
        .parent()
        .and_then(|home| Some(View::new(home, search::of_run(home, run)?)));
    // The search's section has all trials; a part for each would bury the rest.
    let is_trial = |stage: &StageRun| searched.is_some() && stage.point.contains_key(search::TRIAL);
    let mut evaluations = Vec::new();
    for stage in run.stages.iter().filter(|stage| !is_trial(stage)) {
        if !in_time() {
            return None;
        }
        evaluations.extend(evaluation(stage, store));
    }
    let mut body = asked::head(run, &evaluations);
    body.push_str(&asked::troubles(run));
    if let Some(view) = &searched {
        body.push_str(&search::section(view));
    }
    body.push_str(&accounts(run, runs));
    let mut folds = answers(run, evaluations, &mut body);
    let has_answer = !folds.is_empty() || searched.is_some();
    let computed = ComputedMetrics::new(runs, store);
    folds.extend(trainings(run, &in_time, |stage| match is_trial(stage) {
        true => None,
        false => training::section(stage, &computed, store),
    })?);
    folds.extend(lookahead(run));
    folds.push(data::section(run, store, &in_time)?);
    folds.push(provenance(run, store, &in_time, is_trial)?);
    folds.retain(|fold| !fold.body.is_empty());
    if folds.len() >= MOST_WITHOUT_CONTENTS {
        body.push_str(&contents(&folds));
    }
    for (i, fold) in folds.iter().enumerate() {
        body.push_str(&fold.html(2, i == 0 && !has_answer));
    }
    body.push_str(&glossary::section(&body));
    Some(body)
}

/// The fewest parts of a report with links to them.
const MOST_WITHOUT_CONTENTS: usize = 4;

/// The paper accounts whose night was booked after the run.
fn accounts(run: &Run, runs: &Path) -> String {
    let mut out = String::new();
    let Some(home) = runs.parent() else {
        return out;
    };
    for account in &run.accounts {
        let _ = writeln!(out, "<h2>Paper account {}</h2>", escape(account));
        match Ledger::read(home, account) {
            Ok(ledger) => out.push_str(&paper_account(&ledger)),
            Err(err) => {
                let _ = writeln!(out, "<p>{}</p>", escape_content(&err.message));
            }
        }
    }
    out
}

/// Writes the answers of the evaluations to the first screen, and returns their parts. A single evaluation
/// has the report to itself; of several, those that join others come first, and the others are a table.
fn answers(run: &Run, evaluations: Vec<Evaluation>, body: &mut String) -> Vec<Fold> {
    if evaluations.len() == 1 {
        return evaluations
            .into_iter()
            .flat_map(|one| {
                body.push_str(&one.head);
                one.folds
            })
            .collect();
    }
    let mut folds = Vec::new();
    let (joins, others): (Vec<_>, Vec<_>) = evaluations.into_iter().partition(|one| one.joins);
    for one in joins {
        let _ = writeln!(body, "<h2>{}</h2>\n{}", escape(&one.id), one.head);
        if !one.folds.is_empty() {
            let title = format!("More of {}", one.id);
            folds.push(Fold::new(&title, String::new(), nested(&one.folds)));
        }
    }
    if others.is_empty() {
        return folds;
    }
    let rows: Vec<(String, &Values)> = others.iter().map(|one| (escape(&one.id), &one.values)).collect();
    let (first, rest) = rows.split_at(rows.len().min(MOST_OPEN));
    let _ = writeln!(body, "<h2>Evaluations</h2>\n{}", summary_table(first));
    if !rest.is_empty() {
        body.push_str(&html::collapsed(&format!("{} more", rest.len()), &summary_table(rest)));
    }
    for (name, stages) in by_name(run) {
        let is_of = |one: &&Evaluation| stages.iter().any(|stage| stage.id == one.id);
        let own: Vec<Fold> = others
            .iter()
            .filter(is_of)
            .map(|one| {
                let body = format!("{}{}", one.head, nested(&one.folds));
                Fold::new(&one.id, escape(&one.line), body)
            })
            .collect();
        match own.len() > MOST_OPEN {
            false => folds.extend(own),
            true => folds.push(Fold::new(
                name,
                format!("{} points", own.len()),
                format!(
                    "<p><code>runner compare {} --html</code> puts them side by side.</p>\n{}",
                    escape(&run.id),
                    nested(&own)
                ),
            )),
        }
    }
    folds
}

/// Parts inside of a part.
fn nested(folds: &[Fold]) -> String {
    folds.iter().map(|fold| fold.html(3, false)).collect()
}

/// The part of all trainings; `None` when they are not rendered in time.
fn trainings(
    run: &Run,
    in_time: &impl Fn() -> bool,
    section: impl Fn(&StageRun) -> Option<Fold>,
) -> Option<Option<Fold>> {
    let mut found = Vec::new();
    for stage in &run.stages {
        if !in_time() {
            return None;
        }
        found.extend(section(stage));
    }
    Some(match found.len() {
        0 => None,
        1 => found.pop().map(|one| Fold::new("Training", one.summary, one.body)),
        n => Some(Fold::new("Training", format!("{n} trainings"), nested(&found))),
    })
}

/// Stages, keys, parameters and programs; `None` when they are not rendered in time.
fn provenance(
    run: &Run,
    store: &Store,
    in_time: &impl Fn() -> bool,
    is_left_out: impl Fn(&StageRun) -> bool,
) -> Option<Fold> {
    let mut body = String::from("<h3>Stages</h3>\n");
    body.push_str(&stage_graph(run));
    body.push_str(&stage_table(run, in_time)?);
    body.push_str(&programs::section(run, store, in_time)?);
    body.push_str(&parameters(run, in_time, is_left_out)?);
    let stages: Vec<&StageRun> = run.stages.iter().collect();
    let summary = format!("{}: {}", text::count(stages.len(), "stage"), counts(&stages));
    Some(Fold::new("Provenance", summary, body))
}

/// The maximum number of points of a stage, and of rows of a table, that are shown expanded.
const MOST_OPEN: usize = 12;

/// The stages in the order in which their names first occur, with the points of a matrix together.
fn by_name(run: &Run) -> Vec<(&str, Vec<&StageRun>)> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut found: Vec<(&str, Vec<&StageRun>)> = Vec::new();
    for stage in &run.stages {
        let at = *places.entry(&stage.stage).or_insert_with(|| {
            found.push((&stage.stage, Vec::new()));
            found.len() - 1
        });
        found[at].1.push(stage);
    }
    found
}

/// The outcome of the look-ahead check, if there was one.
fn lookahead(run: &Run) -> Option<Fold> {
    let check = run.lookahead.as_ref()?;
    let class = match check.verdict.as_str() {
        "passed" => "ran",
        "found" => "failed",
        _ => "skipped",
    };
    let summary = format!(
        "<span class=\"{class}\">{}</span> {}",
        escape(&check.verdict),
        escape(&check.summary)
    );
    let mut body = format!(
        "<p>{} The check took {}.</p>\n",
        escape(&check.summary),
        shown(check.seconds, Unit::Seconds)
    );
    for (title, lines) in [
        ("changed with later data", &check.found),
        ("not checked", &check.unchecked),
    ] {
        if !lines.is_empty() {
            let rows: Vec<Vec<String>> = lines.iter().map(|line| vec![escape(line)]).collect();
            body.push_str(&table(&[title], &rows));
        }
    }
    Some(Fold::new("Look-ahead", summary, body))
}

/// The table of stages; `None` when it is not rendered in time.
fn stage_table(run: &Run, in_time: &impl Fn() -> bool) -> Option<String> {
    let rows: Option<Vec<Vec<String>>> = by_name(run)
        .into_iter()
        .flat_map(|(_, stages)| stages)
        .map(|stage| {
            let state = status_of(stage);
            let mut status = ["<span class=\"", state, "\">", state, "</span>"].concat();
            if let Some(error) = &stage.error {
                let _ = write!(status, " <span class=\"dim long\">{}</span>", escape(error));
            }
            let row = row![
                escape(&stage.id),
                escape(&stage.kind),
                status,
                shown(stage.seconds, Unit::Seconds),
                stage.computed_seconds.map(|value| shown(value, Unit::Seconds)),
                stage.peak_memory.map(bytes),
                stage.memo.map(|(hits, total)| format!("{hits} / {total}")),
                stage.key.map(|key| key.short()),
            ];
            in_time().then_some(row)
        })
        .collect();
    let texts = ["stage", "kind", "status"].map(|name| Column::text(name).left());
    let figures = [
        "time in this run",
        "time when computed",
        "peak memory",
        "memo hits",
        "key",
    ];
    let columns: Vec<Column> = texts.into_iter().chain(figures.map(Column::text)).collect();
    let mut out = String::new();
    let mut rest = rows?.into_iter();
    let mut open = Vec::new();
    let mut closed = String::new();
    // The points of a large matrix are shown as one row, and in a collapsed table of their own.
    for (name, stages) in by_name(run) {
        let rows: Vec<Vec<String>> = rest.by_ref().take(stages.len()).collect();
        if stages.len() <= MOST_OPEN {
            open.extend(rows);
            continue;
        }
        let peak = stages.iter().filter_map(|stage| stage.peak_memory).max();
        let mut row = vec![
            format!("{} ×{}", escape(name), stages.len()),
            escape(&stages[0].kind),
            counts(&stages),
            shown(stages.iter().map(|stage| stage.seconds).sum(), Unit::Seconds),
        ];
        row.extend([String::new(), peak.map(bytes).unwrap_or_default()]);
        row.resize(columns.len(), String::new());
        open.push(row);
        closed.push_str(&html::collapsed(
            &format!("{name}: {} points", stages.len()),
            &figure_table::table(&columns, &rows),
        ));
    }
    out.push_str(&figure_table::table(&columns, &open));
    out.push_str(&closed);
    Some(out)
}

/// The parameters, and the configuration of each stage; `None` when they are not rendered in time.
fn parameters(
    run: &Run,
    in_time: &impl Fn() -> bool,
    is_left_out: impl Fn(&StageRun) -> bool,
) -> Option<String> {
    let mut out = String::from("<h3>Parameters</h3>\n");
    if !run.params.is_empty() {
        let rows: Vec<_> = run
            .params
            .iter()
            .map(|(name, value)| vec![escape(name), escape(&value.to_string())])
            .collect();
        out.push_str(&table(&["parameter", "value"], &rows));
    }
    for (name, stages) in by_name(run) {
        let mut parts = String::new();
        let stages: Vec<&StageRun> = stages.into_iter().filter(|stage| !is_left_out(stage)).collect();
        for stage in &stages {
            if !in_time() {
                return None;
            }
            let config = serde_json::to_string_pretty(&stage.config).unwrap_or_default();
            for part in [
                "<details><summary>",
                &escape(&stage.id),
                " <span class=\"dim\">",
                &escape(&stage.kind),
                " v",
                &stage.version.to_string(),
                "</span></summary><pre>",
                &escape_content(&config),
                "</pre></details>\n",
            ] {
                parts.push_str(part);
            }
        }
        match stages.len() > MOST_OPEN {
            true => out.push_str(&html::collapsed(&format!("{name}: {} points", stages.len()), &parts)),
            false => out.push_str(&parts),
        }
    }
    Some(out)
}
