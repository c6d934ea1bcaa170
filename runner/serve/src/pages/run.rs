//! A run: its graph, its stages, and while it is running its progress, curves and logs.

use crate::control;
use crate::layout::{Page, link, run_address, search_address, stage_address};
use crate::live::{Fragments, Source};
use crate::site::Site;
use runner_engine::{Failure, RunStatus, StageStatus, row, text};
use runner_history::{Run, StageRun, marks};
use runner_report::html::{escape, escape_content, section, table};
use runner_report::reporter::{StageProgress, short};
use runner_report::{LiveRun, learning_curves, search, stage_graph, status_of};
use serde_json::Value;
use std::collections::BTreeMap;

/// The number of stages of the table; of more, those that are cached are left out first.
const STAGES: usize = 200;

pub(crate) fn run(site: &Site, id: &str, is_whole: bool) -> Result<Page, Failure> {
    let live = LiveRun::open(&site.runs, id)?;
    let Some(run) = live.run() else {
        return Err(Failure::usage(format!("run `{id}` has no events"))
            .hint("it has just begun, or was killed at its start"));
    };
    let mut fragments = fragments(&live, is_whole);
    let mut part = |id: &str| {
        let html = fragments.remove(id).unwrap_or_default();
        format!("<div id=\"{id}\">{html}</div>\n")
    };
    let marks = marks::readable(&site.runs, id, &mut |text| site.host.warn(text)).suffix();
    let is_running = live.status() == RunStatus::Running;
    let mut body = format!(
        "<h1>{}</h1><p class=\"dim\">run {}{} · {} · {}</p>\n",
        escape(&run.pipeline),
        escape(id),
        escape(&marks),
        run.started.format("%Y-%m-%d %H:%M:%S UTC"),
        escape(&run.file.display().to_string())
    );
    body.push_str(&part("state"));
    if is_running && site.allow_run && control::process(&site.runs, id).is_some() {
        body.push_str(&format!(
            "<form method=\"post\" action=\"{}/cancel\">{}<button class=\"stop\">Cancel the \
            run</button></form>\n",
            run_address(id),
            site.form_secret()
        ));
    }
    body.push_str(&part("graph"));
    body.push_str(&part("running"));
    body.push_str("<h2>Stages</h2>\n");
    body.push_str(&part("stages"));
    body.push_str(&part("curves"));
    body.push_str(&part("log"));
    let search = search::of_run(&site.home, run).map(|record| search_address(&record.header.id));
    let search = search.map(|address| format!(" · {}", link(&address, "Search")));
    body.push_str(&format!(
        "<p>{} · {}{}</p>\n",
        link(&format!("{}/report", run_address(id)), "Report"),
        link(&format!("/compare?run={id}"), "Compare its points"),
        search.unwrap_or_default()
    ));
    body.push_str(&parameters(run));
    Ok(Page {
        live: is_running.then(|| format!("/events{}", run_address(id))),
        ..Page::new(format!("{} {id}", run.pipeline), "/", body)
    })
}

/// A run's page as it changes.
pub(crate) struct LiveRunPage(LiveRun);

impl LiveRunPage {
    /// Opens the run.
    pub(crate) fn open(site: &Site, id: &str) -> Result<Self, Failure> {
        LiveRun::open(&site.runs, id).map(Self)
    }
}

impl Source for LiveRunPage {
    fn render(&mut self) -> Fragments {
        match self.0.advance() {
            Ok(()) => fragments(&self.0, false),
            Err(failure) => {
                Fragments::from([("state", format!("<p class=\"error\">{}</p>", escape(&failure.message)))])
            }
        }
    }

    fn is_over(&self) -> bool {
        self.0.status() != RunStatus::Running
    }
}

/// The parts of the page that change. `is_whole` shows every stage.
fn fragments(live: &LiveRun, is_whole: bool) -> Fragments {
    let Some(run) = live.run() else {
        return Fragments::new();
    };
    Fragments::from([
        ("state", state(live, run)),
        ("graph", stage_graph(run)),
        ("running", running(live, run)),
        ("stages", stages(run, is_whole)),
        ("curves", curves(live, run)),
        ("log", log(live)),
    ])
}

fn state(live: &LiveRun, run: &Run) -> String {
    let status = live.status().name();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for stage in &run.stages {
        *counts.entry(status_of(stage)).or_default() += 1;
    }
    let counts: Vec<String> = counts.iter().map(|(status, n)| format!("{n} {status}")).collect();
    let seconds = match live.status() {
        RunStatus::Running => live.seconds_since(run.started).floor(),
        _ => run.seconds,
    };
    format!(
        "<p role=\"status\"><strong class=\"{status}\">{status}</strong> {} · {} of {}</p>\n",
        text::duration(seconds),
        escape(&counts.join(", ")),
        text::count(run.stages.len(), "stage")
    )
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
            let status = status_of(stage);
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
                format!("<span class=\"{status}\">{status}</span>{}", error.unwrap_or_default()),
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

/// The learning curves of running trainings.
fn curves(live: &LiveRun, run: &Run) -> String {
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
    format!(
        "<h2>Log</h2>\n<pre class=\"log\" tabindex=\"0\" aria-label=\"log\">{}</pre>\n",
        lines.join("\n")
    )
}

fn parameters(run: &Run) -> String {
    let row = |(name, value): (&String, &Value)| vec![escape(name), escape(&value.to_string())];
    let rows: Vec<Vec<String>> = run.params.iter().map(row).collect();
    section("<h2>Parameters</h2>", &["parameter", "value"], &rows)
}
