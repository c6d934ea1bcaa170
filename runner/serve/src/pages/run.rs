//! A run: its answer and its warnings, its graph, its curves, its stages, and while it is running its
//! progress and logs.

use crate::answer::answers;
use crate::control;
use crate::layout::{Page, encode, link, run_address, search_address, stage_address};
use crate::live::{Fragments, Source};
use crate::parts::{button, folded, status};
use crate::site::Site;
use runner_engine::{Failure, RunStatus, StageStatus, row, text};
use runner_history::{Run, StageRun, figures, marks};
use runner_report::html::{escape, escape_content, section, table};
use runner_report::reporter::{StageProgress, short};
use runner_report::{BoxLook, LiveRun, learning_curves, search, stage_graph_with, status_of};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The numbers of answers, of errors and of warnings that stand at the top.
const ANSWERS: usize = 3;
const ERRORS: usize = 5;
const WARNINGS: usize = 3;

/// The learning curves that a run shows; those of its stage are all.
const LEARNING: [&str; 3] = [
    "charts/episodic_return",
    "validation/return_greedy",
    "losses/explained_variance",
];

/// The number of stages of the table; of more, those that are cached are left out first.
const STAGES: usize = 200;

pub(crate) fn run(site: &Site, id: &str, is_whole: bool) -> Result<Page, Failure> {
    let live = LiveRun::open(&site.runs, id)?;
    let Some(run) = live.run() else {
        return Err(Failure::usage(format!("run `{id}` has no events"))
            .hint("it has just begun, or was killed at its start"));
    };
    let mut fragments = fragments(site, &live, is_whole);
    let mut part = |id: &str| {
        let html = fragments.remove(id).unwrap_or_default();
        format!("<div id=\"{id}\">{html}</div>\n")
    };
    let marks = marks::readable(&site.runs, id, &mut |text| site.host.warn(text)).suffix();
    let is_running = live.status() == RunStatus::Running;
    let night = run.night.as_ref().map(|night| format!(" · night {}", escape(night)));
    let mut body = format!(
        "<p class=\"crumbs\">{} / {}{}</p><h1>{}</h1><p class=\"dim\">{}{} · {}</p>\n",
        link("/runs", "Runs"),
        escape(id),
        escape(&marks),
        escape(&run.pipeline),
        run.started.format("%Y-%m-%d %H:%M:%S UTC"),
        night.unwrap_or_default(),
        escape(&run.file.display().to_string())
    );
    body.push_str(&part("state"));
    body.push_str(&actions(site, run, is_running));
    body.push_str(&part("graph"));
    body.push_str(&part("running"));
    body.push_str(&part("curves"));
    body.push_str("<h2>Stages</h2>\n");
    body.push_str(&part("stages"));
    body.push_str(&part("log"));
    body.push_str(&parameters(run));
    Ok(Page {
        live: is_running.then(|| format!("/events{}", run_address(id))),
        ..Page::new(format!("{} {id}", run.pipeline), "/runs", body)
    })
}

/// The ways on from a run: its report, comparisons, its search, and a button that cancels it.
fn actions(site: &Site, run: &Run, is_running: bool) -> String {
    let address = run_address(&run.id);
    let mut out = format!(
        "<div class=\"actions\"><a class=\"button main\" href=\"{0}/report\">Report</a>",
        escape(&address)
    );
    let is_matrix = run.stages.iter().any(|stage| !stage.point.is_empty());
    if is_matrix {
        out.push_str(&button(
            &format!("/compare?run={}", encode(&run.id)),
            "Compare its points",
        ));
    }
    let others = format!(
        "/runs?where=pipeline%20%3D%20{}",
        encode(&format!("'{}'", run.pipeline))
    );
    out.push_str(&button(&others, "Runs of this pipeline"));
    if let Some(record) = search::of_run(&site.home, run) {
        out.push_str(&button(&search_address(&record.header.id), "Search"));
    }
    if is_running && site.allow_run && control::process(&site.runs, &run.id).is_some() {
        out.push_str(&format!(
            "<form method=\"post\" action=\"{}/cancel\">{}<button class=\"stop\">Cancel the \
            run</button></form>",
            escape(&address),
            site.form_secret()
        ));
    }
    out + "</div>\n"
}

/// A run's page as it changes.
pub(crate) struct LiveRunPage {
    site: Site,
    live: LiveRun,
}

impl LiveRunPage {
    /// Opens the run.
    pub(crate) fn open(site: &Site, id: &str) -> Result<Self, Failure> {
        let live = LiveRun::open(&site.runs, id)?;
        let site = site.clone();
        Ok(Self { site, live })
    }
}

impl Source for LiveRunPage {
    fn render(&mut self) -> Fragments {
        match self.live.advance() {
            Ok(()) => fragments(&self.site, &self.live, false),
            Err(failure) => {
                Fragments::from([("state", format!("<p class=\"error\">{}</p>", escape(&failure.message)))])
            }
        }
    }

    fn is_over(&self) -> bool {
        self.live.status() != RunStatus::Running
    }
}

/// The parts of the page that change. `is_whole` shows every stage.
fn fragments(site: &Site, live: &LiveRun, is_whole: bool) -> Fragments {
    let Some(run) = live.run() else {
        return Fragments::new();
    };
    Fragments::from([
        ("state", state(site, live, run)),
        ("graph", graph(live, run)),
        ("running", running(live, run)),
        ("stages", stages(run, is_whole)),
        ("curves", curves(site, live, run)),
        ("log", log(live)),
    ])
}

/// The answer of a run, its warnings and errors, and the counts of its stages.
fn state(site: &Site, live: &LiveRun, run: &Run) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for stage in &run.stages {
        *counts.entry(status_of(stage)).or_default() += 1;
    }
    let counts: Vec<String> = counts.iter().map(|(status, n)| format!("{n} {status}")).collect();
    let seconds = match live.status() {
        RunStatus::Running => live.seconds_since(run.started).floor(),
        _ => run.seconds,
    };
    let mut out = format!(
        "<p role=\"status\">{} {} · {} of {}</p>\n",
        status(live.status().name()),
        text::duration(seconds),
        escape(&counts.join(", ")),
        text::count(run.stages.len(), "stage")
    );
    // Nothing is said of a run in progress, whose evaluations may be those of others.
    let is_over = live.status() != RunStatus::Running;
    let store = site.store().ok().filter(|_| is_over);
    for said in store.map(|store| answers(run, &store, ANSWERS)).unwrap_or_default() {
        let _ = writeln!(out, "<p class=\"lead\">{}</p>", escape(&said));
    }
    for stage in run
        .stages
        .iter()
        .filter(|stage| stage.status == Some(StageStatus::Failed))
        .take(ERRORS)
    {
        let hint = stage.hint.as_ref().map(|hint| format!("<br>{}", escape(hint)));
        let _ = writeln!(
            out,
            "<p class=\"error\">{}: {}{}</p>",
            link(&stage_address(&run.id, &stage.id), &stage.id),
            escape(stage.error.as_deref().unwrap_or("failed")),
            hint.unwrap_or_default()
        );
    }
    let all = run
        .stages
        .iter()
        .flat_map(|stage| stage.warnings.iter().map(move |warning| (&stage.id, warning)));
    let warnings: Vec<String> = all
        .map(|(stage, warning)| {
            format!(
                "<li>{}: {}</li>",
                link(&stage_address(&run.id, stage), stage),
                escape(&warning.message)
            )
        })
        .collect();
    let list = |warnings: &[String]| format!("<ul class=\"warnings\">{}</ul>\n", warnings.concat());
    let (first, others) = warnings.split_at(warnings.len().min(WARNINGS));
    if !first.is_empty() {
        out.push_str(&list(first));
    }
    if !others.is_empty() {
        let summary = text::count(others.len(), "more warning");
        out.push_str(&folded("warnings", &summary, &list(others)));
    }
    out
}

/// The graph of stages: each box leads to its stage, with its progress or its duration.
fn graph(live: &LiveRun, run: &Run) -> String {
    stage_graph_with(run, &|stage| {
        let share = live.progress.get(&stage.id).and_then(StageProgress::share);
        let time = match stage.status {
            Some(StageStatus::Ran | StageStatus::Failed) => Some(text::duration(stage.seconds)),
            Some(StageStatus::Cached) => Some("cached".to_owned()),
            Some(StageStatus::Skipped) => Some("skipped".to_owned()),
            None => share.map(|share| format!("{:.0} %", 100.0 * share)),
        };
        let kind = stage.kind.rsplit('/').next().unwrap_or(&stage.kind);
        BoxLook {
            note: time.map(|time| format!("{time} · {kind}")),
            href: Some(stage_address(&run.id, &stage.id)),
        }
    })
}

/// The running stages, with progress, time left, speed, CPU and memory.
fn running(live: &LiveRun, run: &Run) -> String {
    if live.progress.is_empty() || live.status() != RunStatus::Running {
        return String::new();
    }
    let rows: Vec<Vec<String>> = live
        .progress
        .iter()
        .map(|(stage, progress)| {
            row![
                link(&stage_address(&run.id, stage), stage),
                text::duration(live.seconds_since(progress.began()).floor()),
                share(stage, progress),
                progress.left().map(|left| text::duration(left.ceil())),
                progress.total.and(progress.rate()).map(short),
                progress.cores().map(|cores| format!("{:.0} %", cores * 100.0)),
                progress.memory.map(text::size),
                escape(&progress.message),
            ]
        })
        .collect();
    let head = [
        "stage",
        "time",
        "progress",
        "left",
        "per second",
        "CPU",
        "memory",
        "at work",
    ];
    section("<h2>Running</h2>", &head, &rows)
}

fn share(stage: &str, progress: &StageProgress) -> String {
    let Some(share) = progress.share() else {
        return String::new();
    };
    format!(
        "<progress max=\"100\" value=\"{0:.1}\" aria-label=\"{1}\">{0:.1} %</progress> {0:.1} %",
        share * 100.0,
        escape(stage)
    )
}

fn stages(run: &Run, is_whole: bool) -> String {
    // What needs attention first, where there are too many.
    let rank = |stage: &StageRun| match stage.status {
        Some(StageStatus::Failed) => 0,
        None if stage.started => 1,
        Some(StageStatus::Ran) => 2,
        Some(StageStatus::Skipped) => 3,
        None => 4,
        Some(StageStatus::Cached) => 5,
    };
    let mut shown: Vec<&StageRun> = run.stages.iter().collect();
    let is_cut = shown.len() > STAGES && !is_whole;
    if is_cut {
        shown.sort_by_key(|stage| rank(stage));
        shown.truncate(STAGES);
    }
    let rows: Vec<Vec<String>> = shown
        .into_iter()
        .map(|stage| {
            let state = status_of(stage);
            let error = stage
                .error
                .as_ref()
                .map(|error| format!(" <span class=\"dim\">{}</span>", escape(error)));
            let seconds = match stage.status {
                Some(StageStatus::Cached) => stage
                    .computed_seconds
                    .map(|seconds| format!("({})", text::duration(seconds))),
                Some(_) => Some(text::duration(stage.seconds)),
                None => None,
            };
            row![
                link(&stage_address(&run.id, &stage.id), &stage.id),
                escape(&stage.kind),
                format!("{}{}", status(state), error.unwrap_or_default()),
                seconds,
                stage.peak_memory.map(text::size),
                stage.memo.map(|(hits, total)| format!("{hits} / {total}")),
            ]
        })
        .collect();
    let mut out = table(&["stage", "kind", "status", "time", "peak memory", "memo hits"], &rows);
    if is_cut {
        out.push_str(&format!(
            "<p>{} of {} stages. {}</p>\n",
            STAGES,
            run.stages.len(),
            link(&format!("{}?stages=all", run_address(&run.id)), "All stages")
        ));
    }
    out
}

/// The learning curves: of trainings in progress as they grow, or else of the first one, from the store.
fn curves(site: &Site, live: &LiveRun, run: &Run) -> String {
    let running = run
        .stages
        .iter()
        .filter(|stage| stage.status.is_none() && !stage.metrics.is_empty());
    let mut out = String::new();
    for stage in running.take(4) {
        out.push_str(&format!(
            "<h2>{}</h2>\n{}",
            escape(&stage.id),
            learning_curves(&live.curves(&stage.id))
        ));
    }
    if live.status() == RunStatus::Running {
        return out;
    }
    let trained = run.stages.iter().find(|stage| stage.kind.starts_with("train/"));
    let curves = trained.and_then(|stage| Some((stage, figures::curves(stage, &site.store().ok()?)?)));
    if let Some((stage, mut curves)) = curves {
        curves.retain(|name, points| LEARNING.contains(&name.as_str()) && points.len() > 1);
        if !curves.is_empty() {
            out.push_str(&format!(
                "<h2>Learning: {}</h2>\n{}",
                link(&stage_address(&run.id, &stage.id), &stage.id),
                learning_curves(&curves)
            ));
        }
    }
    out
}

fn log(live: &LiveRun) -> String {
    let programs = live.programs();
    if live.log.is_empty() && programs.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = live
        .log
        .iter()
        .chain(&programs)
        .map(|(stage, line)| format!("{}: {}", escape_content(stage), escape_content(line)))
        .collect();
    let log = format!(
        "<pre class=\"log\" tabindex=\"0\" role=\"region\" aria-label=\"log\">{}</pre>\n",
        lines.join("\n")
    );
    // What is being written is read; what was written is looked up.
    match live.status() {
        RunStatus::Running => format!("<h2>Log</h2>\n{log}"),
        _ => folded("log", &format!("Log, {}", text::count(lines.len(), "line")), &log),
    }
}

fn parameters(run: &Run) -> String {
    let row = |(name, value): (&String, &Value)| vec![escape(name), escape(&value.to_string())];
    let rows: Vec<Vec<String>> = run.params.iter().map(row).collect();
    match rows.is_empty() {
        true => String::new(),
        false => {
            let summary = format!("Parameters, {}", rows.len());
            folded("parameters", &summary, &table(&["parameter", "value"], &rows))
        }
    }
}
