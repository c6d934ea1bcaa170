//! The overview: what runs, what is due, what failed, where the champions stand, and the latest results.

use super::policies::{CHAMPION, equity};
use crate::answer::{answers, spark};
use crate::layout::{Page, link, paper_address, run_address, stage_address};
use crate::live::{Fragments, Source};
use crate::parts::{button, card, empty, status, tiles, time};
use crate::pulse::is_failed;
use crate::site::Site;
use chrono::Utc;
use runner_engine::{Failure, RunStatus, text};
use runner_history::paper::Ledger;
use runner_history::policies::Registry;
use runner_history::schedule::{Due, DueTimes, NightLog, names};
use runner_history::{self as history, Run};
use runner_report::figures::{Unit, signed};
use runner_report::html::escape;
use runner_report::{LiveRun, paper_state};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The number of runs that the overview looks at: the last ones.
const RUNS: usize = 60;

/// The numbers of running runs, of failures and of results that are shown.
const RUNNING: usize = 4;
const FAILURES: usize = 6;
const RESULTS: usize = 8;

pub(crate) fn overview(site: &Site) -> Result<Page, Failure> {
    let start = match site.allow_run {
        true => button("/pipelines", "Start a run"),
        false => String::new(),
    };
    let body = format!(
        "<div class=\"head\"><h1>Overview</h1>{start}</div>\n<div id=\"overview\">{}</div>\n",
        content(site)?
    );
    Ok(Page {
        live: Some("/events/overview".to_owned()),
        ..Page::new("Overview", "/", body)
    })
}

/// A schedule: its name, its nights, and the next one.
struct Scheduled {
    name: String,
    log: NightLog,
    next: Option<Due>,
}

fn schedules(site: &Site) -> Result<Vec<Scheduled>, Failure> {
    let all = names(&site.home)?.into_iter().map(|name| {
        let log = NightLog::read(&site.home, &name)?;
        let schedule = log.file().and_then(|file| site.host.schedule(file).ok());
        let next = schedule.and_then(|schedule| DueTimes(&schedule).after(Utc::now()));
        Ok(Scheduled { name, log, next })
    });
    all.collect()
}

fn content(site: &Site) -> Result<String, Failure> {
    let (mut runs, _) = history::last(&site.runs, RUNS)?;
    runs.reverse();
    if runs.is_empty() {
        return Ok(empty(
            "Nothing has run here yet.",
            "<code>runner exec PIPELINE</code> runs a pipeline, and this page follows it. <code>runner \
            init FILE</code> \
            writes a first one for a file of market data.",
        ));
    }
    let schedules = schedules(site)?;
    let (failures, failed) = failures(site, &runs, &schedules)?;
    let running: Vec<&Run> = runs.iter().filter(|run| run.status == RunStatus::Running).collect();
    let next = schedules
        .iter()
        .filter_map(|one| one.next.as_ref())
        .min_by_key(|due| due.at);
    let (champions, standing) = champions(site)?;
    let mut out = tiles(&[
        ("Running", running.len().to_string()),
        ("To look at", failed.to_string()),
        ("Next night", next.map(|due| time(due.at)).unwrap_or_default()),
        (
            "Last run",
            runs.first().map(|run| time(run.started)).unwrap_or_default(),
        ),
        ("Paper", standing),
    ]);
    out.push_str("<div class=\"columns\"><div>");
    out.push_str(&at_work(site, &running));
    out.push_str(&results(site, &runs));
    out.push_str("</div><div>");
    out.push_str(&failures);
    out.push_str(&champions);
    out.push_str(&due(&schedules));
    Ok(out + "</div></div>\n")
}

/// The runs in progress, with their stages that run.
fn at_work(site: &Site, running: &[&Run]) -> String {
    let mut body = String::new();
    for run in running.iter().take(RUNNING) {
        let Ok(live) = LiveRun::open(&site.runs, &run.id) else {
            continue;
        };
        let ended = run.stages.iter().filter(|stage| stage.status.is_some()).count();
        let _ = write!(
            body,
            "<article><h3>{}</h3><p class=\"dim\">{} of {} · {}</p>",
            link(&run_address(&run.id), &run.pipeline),
            ended,
            text::count(run.stages.len(), "stage"),
            text::duration(live.seconds_since(run.started).floor())
        );
        for (stage, progress) in live.progress.iter().take(RUNNING) {
            let share = progress.share().map(|share| {
                format!(
                    " <progress max=\"100\" value=\"{:.0}\" aria-label=\"{}\"></progress> {:.0} %",
                    100.0 * share,
                    escape(stage),
                    100.0 * share
                )
            });
            let left = progress
                .left()
                .map(|left| format!(" · {} left", text::duration(left.ceil())));
            let _ = write!(
                body,
                "<p>{}{}{}</p>",
                link(&stage_address(&run.id, stage), stage),
                share.unwrap_or_default(),
                left.unwrap_or_default()
            );
        }
        body.push_str("</article>\n");
    }
    match body.is_empty() {
        true => String::new(),
        false => card("Running", &body),
    }
}

/// The list of all that needs a person: pipelines whose last run failed, nights to run again, accounts that
/// do not act. Also their number.
fn failures(site: &Site, runs: &[Run], schedules: &[Scheduled]) -> Result<(String, usize), Failure> {
    let mut items = Vec::new();
    let mut seen = BTreeSet::new();
    for run in runs.iter().filter(|run| seen.insert(&run.pipeline)) {
        if matches!(run.status, RunStatus::Failed | RunStatus::Killed) {
            let why = run
                .first_error()
                .unwrap_or_else(|| "its process ended without a word".to_owned());
            items.push(format!(
                "{} {} <span class=\"dim\">{}</span><p>{}</p>",
                status(run.status.name()),
                link(&run_address(&run.id), &run.pipeline),
                time(run.started),
                escape(&why)
            ));
        }
    }
    for scheduled in schedules {
        let failed: Vec<_> = scheduled
            .log
            .nights()
            .rev()
            .filter(|night| is_failed(night.status))
            .collect();
        if let Some(last) = failed.first() {
            items.push(format!(
                "{} {} <span class=\"dim\">{} of {}</span><p>{}: {}</p>",
                status("failed"),
                link("/schedule", &scheduled.name),
                text::count(failed.len(), "night"),
                escape(&scheduled.name),
                escape(&last.night),
                escape(last.why.as_deref().unwrap_or(last.status.name()))
            ));
        }
    }
    for name in Ledger::names(&site.home)? {
        let state = match Ledger::read(&site.home, &name) {
            Ok(ledger) => paper_state(&ledger),
            Err(_) => "damaged",
        };
        if matches!(state, "halted" | "broken" | "damaged") {
            items.push(format!(
                "{} {} <span class=\"dim\">paper account</span>",
                status(state),
                link(&paper_address(&name), &name)
            ));
        }
    }
    let more = items.len().saturating_sub(FAILURES);
    if items.is_empty() {
        return Ok((String::new(), 0));
    }
    let mut body: String = items
        .iter()
        .take(FAILURES)
        .map(|item| format!("<li>{item}</li>"))
        .collect();
    if more > 0 {
        let _ = write!(body, "<li class=\"dim\">and {more} more</li>");
    }
    Ok((
        card("To look at", &format!("<ul class=\"plain\">{body}</ul>")),
        items.len(),
    ))
}

/// The champion of each policy with its equity, and the returns of the paper accounts.
fn champions(site: &Site) -> Result<(String, String), Failure> {
    let mut out = String::new();
    for (name, policy) in Registry::new(&site.home).all()? {
        let Some(version) = policy.alias(CHAMPION, None) else {
            continue;
        };
        let mut body = format!(
            "<p>{} · version {} · since {}</p>",
            link("/policies", &name),
            version.version,
            version
                .from
                .as_of
                .map_or_else(|| time(version.time), |date| date.to_string())
        );
        if let Ok(store) = site.store() {
            body.push_str(&equity(&policy, &store));
        }
        out.push_str(&card("Champion", &body));
    }
    let standing = Ledger::names(&site.home)?.into_iter().filter_map(|name| {
        let ledger = Ledger::read(&site.home, &name).ok()?;
        let growth = ledger.last_night()?.standing.growth;
        Some(format!(
            "{} {}",
            link(&paper_address(&name), &name),
            signed(growth - 1.0, Unit::Percent)
        ))
    });
    Ok((out, standing.take(3).collect::<Vec<_>>().join(", ")))
}

fn due(schedules: &[Scheduled]) -> String {
    let line = |scheduled: &Scheduled| {
        let next = scheduled
            .next
            .as_ref()
            .map_or_else(|| "no further night".to_owned(), |due| time(due.at));
        let last = scheduled.log.nights().next_back();
        let last = last.map(|night| format!("{} {}", escape(&night.night), status(night.status.name())));
        format!(
            "<li>{} <span class=\"dim\">next</span> {next}<p class=\"dim\">last {}</p></li>",
            link("/schedule", &scheduled.name),
            last.unwrap_or_default()
        )
    };
    match schedules {
        [] => String::new(),
        all => card(
            "Due",
            &format!("<ul class=\"plain\">{}</ul>", all.iter().map(line).collect::<String>()),
        ),
    }
}

/// The last runs that are done, each with its answer.
fn results(site: &Site, runs: &[Run]) -> String {
    let store = site.store().ok();
    let done = runs.iter().filter(|run| run.status == RunStatus::Done);
    let mut body = String::new();
    for run in done.take(RESULTS) {
        let found = store.as_ref().map(|store| answers(run, store, 1)).unwrap_or_default();
        let said = match found.is_empty() {
            true => format!(
                "<p class=\"dim\">{}, nothing evaluated</p>",
                text::count(run.stages.len(), "stage")
            ),
            false => found.iter().map(|said| format!("<p>{}</p>", escape(said))).collect(),
        };
        let night = run.night.as_ref().map(|night| format!(" · night {}", escape(night)));
        let _ = writeln!(
            body,
            "<li><div><h3>{}</h3><p class=\"dim\">{} · {}{} · {}</p>{said}</div>{}</li>",
            link(&run_address(&run.id), &run.pipeline),
            time(run.started),
            text::duration(run.seconds),
            night.unwrap_or_default(),
            link(&format!("{}/report", run_address(&run.id)), "report"),
            spark(run)
        );
    }
    match body.is_empty() {
        true => String::new(),
        false => card(
            "Latest results",
            &format!("<ul class=\"results\">{body}</ul><p>{}</p>", link("/runs", "All runs")),
        ),
    }
}

/// The overview as it changes.
pub(crate) struct LiveOverview {
    site: Site,
    ticks: u32,
}

/// The number of looks between two renderings.
const SELDOM: u32 = 4;

impl LiveOverview {
    /// The overview of a site.
    pub(crate) fn new(site: Site) -> Self {
        Self { site, ticks: 0 }
    }
}

impl Source for LiveOverview {
    fn render(&mut self) -> Fragments {
        let is_due = self.ticks.is_multiple_of(SELDOM);
        self.ticks += 1;
        match is_due.then(|| content(&self.site)) {
            Some(Ok(html)) => Fragments::from([("overview", html)]),
            // What cannot be read now may be readable at the next look.
            Some(Err(_)) | None => Fragments::new(),
        }
    }

    fn is_over(&self) -> bool {
        false
    }
}
