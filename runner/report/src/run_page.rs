//! The HTML report of a run: one self-contained file, rendered from the run's events and artifacts. The
//! report is not a cached stage.

use crate::html::{self, bytes, escape, escape_content, table};
use crate::paper::paper_account;
use crate::replace;
use crate::search::{self, View};
use crate::stage_graph::{counts, stage_graph, status_of};
use crate::{data, evaluation, programs, training};
use cache::Store;
use runner_engine::{Failure, row};
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
/// When the file cannot be written. A missing artifact is noted in the report.
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

/// The page's body; `None` when it is not rendered by the deadline.
fn sections(run: &Run, runs: &Path, store: &Store, deadline: Option<Instant>) -> Option<String> {
    let in_time = || deadline.is_none_or(|deadline| Instant::now() < deadline);
    let mut body = format!(
        "<h1>{}</h1><p class=\"dim\">run {} · {} · {} · {}</p>\n",
        escape(&run.pipeline),
        escape(&run.id),
        run.started.format("%Y-%m-%d %H:%M:%S UTC"),
        seconds(run.seconds),
        escape(&run.program)
    );
    // Results come first, then training, then the data and the work behind them.
    let computed = ComputedMetrics::new(runs, store);
    let searched = runs
        .parent()
        .and_then(|home| Some(View::new(home, search::of_run(home, run)?)));
    if let Some(view) = &searched {
        body.push_str(&search::section(view));
    }
    // The search's section has all trials; a section for each would bury the rest.
    let is_trial = |stage: &StageRun| searched.is_some() && stage.point.contains_key(search::TRIAL);
    if let Some(home) = runs.parent() {
        for account in &run.accounts {
            let _ = writeln!(body, "<h2>Paper account {}</h2>", escape(account));
            match Ledger::read(home, account) {
                Ok(ledger) => body.push_str(&paper_account(&ledger)),
                Err(err) => {
                    let _ = writeln!(body, "<p>{}</p>", escape_content(&err.message));
                }
            }
        }
    }
    // What joins evaluations comes before what it joins.
    for joins in [true, false] {
        body.push_str(&sections_of(run, &in_time, |stage| {
            match joins == evaluation::JOINS.contains(&stage.kind.as_str()) && !is_trial(stage) {
                true => evaluation::section(stage, store),
                false => String::new(),
            }
        })?);
    }
    body.push_str(&sections_of(run, &in_time, |stage| match is_trial(stage) {
        true => String::new(),
        false => training::section(stage, &computed, store),
    })?);
    body.push_str(&lookahead(run));
    body.push_str(&data::section(run, store, &in_time)?);
    body.push_str("<h2>Stages</h2>\n");
    body.push_str(&stage_graph(run));
    body.push_str(&stage_table(run, &in_time)?);
    body.push_str(&programs::section(run, store, &in_time)?);
    body.push_str(&parameters(run, &in_time, is_trial)?);
    Some(body)
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

/// A section for each stage that has one, collapsed if a stage has many points; `None` when the sections
/// cannot be rendered in time.
fn sections_of(
    run: &Run,
    in_time: &impl Fn() -> bool,
    section: impl Fn(&StageRun) -> String,
) -> Option<String> {
    let mut out = String::new();
    for (name, stages) in by_name(run) {
        let mut sections = Vec::new();
        for stage in stages {
            if !in_time() {
                return None;
            }
            let section = section(stage);
            if !section.is_empty() {
                sections.push((stage, section));
            }
        }
        let is_many = sections.len() > MOST_OPEN;
        if is_many {
            let _ = writeln!(
                out,
                "<h2>{}: {} points</h2><p class=\"dim\"><code>runner compare {} --html</code> puts them \
                side by side.</p>",
                escape(name),
                sections.len(),
                escape(&run.id)
            );
        }
        for (stage, section) in sections {
            match is_many {
                true => out.push_str(&html::collapsed(&stage.id, &section)),
                false => out.push_str(&section),
            }
        }
    }
    Some(out)
}

/// The outcome of the look-ahead check, if there was one.
fn lookahead(run: &Run) -> String {
    let Some(check) = &run.lookahead else {
        return String::new();
    };
    let class = match check.verdict.as_str() {
        "passed" => "ran",
        "found" => "failed",
        _ => "skipped",
    };
    let mut out = format!(
        "<h2>Look-ahead</h2><p><span class=\"{class}\">{}</span> {} <span class=\"dim\">{}</span></p>\n",
        escape(&check.verdict),
        escape(&check.summary),
        seconds(check.seconds)
    );
    for (title, lines) in [
        ("changed with later data", &check.found),
        ("not checked", &check.unchecked),
    ] {
        if !lines.is_empty() {
            let rows: Vec<Vec<String>> = lines.iter().map(|line| vec![escape(line)]).collect();
            out.push_str(&table(&[title], &rows));
        }
    }
    out
}

/// The table of stages; `None` when it is not rendered in time.
fn stage_table(run: &Run, in_time: &impl Fn() -> bool) -> Option<String> {
    let rows: Option<Vec<Vec<String>>> = by_name(run)
        .into_iter()
        .flat_map(|(_, stages)| stages)
        .map(|stage| {
            let state = status_of(stage);
            let mut shown = ["<span class=\"", state, "\">", state, "</span>"].concat();
            if let Some(error) = &stage.error {
                let _ = write!(shown, " <span class=\"dim\">{}</span>", escape(error));
            }
            let row = row![
                escape(&stage.id),
                escape(&stage.kind),
                shown,
                seconds(stage.seconds),
                stage.computed_seconds.map(seconds),
                stage.peak_memory.map(bytes),
                stage.memo.map(|(hits, total)| format!("{hits} / {total}")),
                stage.key.map(|key| key.short()),
            ];
            in_time().then_some(row)
        })
        .collect();
    let head = [
        "stage",
        "kind",
        "status",
        "time in this run",
        "time when computed",
        "peak memory",
        "memo hits",
        "key",
    ];
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
            seconds(stages.iter().map(|stage| stage.seconds).sum()),
        ];
        row.extend([String::new(), peak.map(bytes).unwrap_or_default()]);
        row.resize(head.len(), String::new());
        open.push(row);
        closed.push_str(&html::collapsed(
            &format!("{name}: {} points", stages.len()),
            &table(&head, &rows),
        ));
    }
    out.push_str(&table(&head, &open));
    out.push_str(&closed);
    Some(out)
}

/// The parameters, and the configuration of each stage; `None` when they are not rendered in time.
fn parameters(
    run: &Run,
    in_time: &impl Fn() -> bool,
    is_left_out: impl Fn(&StageRun) -> bool,
) -> Option<String> {
    let mut out = String::from("<h2>Parameters</h2>\n");
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

fn seconds(value: f64) -> String {
    if value < 0.1 {
        format!("{} ms", (value * 1e3).round_ties_even() as u64)
    } else if value < 100.0 {
        format!("{value:.1} s")
    } else {
        format!("{:.0} min {:02.0} s", (value / 60.0).floor(), value % 60.0)
    }
}
