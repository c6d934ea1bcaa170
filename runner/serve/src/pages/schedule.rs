//! The nights of scheduled pipelines: a calendar from green to red, and the last of them as a table.

use crate::calendar::{Day, calendar, legend};
use crate::layout::{Page, encode, link, run_address, stage_address};
use crate::parts::{Head, Line, card, empty, grid, status, time};
use crate::pulse::is_failed;
use crate::site::Site;
use chrono::Utc;
use runner_engine::{Failure, row, text};
use runner_history::THEN;
use runner_history::schedule::{DueTimes, Night, NightLog, NightStatus, names};
use runner_report::html::{escape, section};

/// The number of nights of the calendar, and of the table.
const CALENDAR: usize = 370;
const NIGHTS: usize = 30;

pub(crate) fn schedule(site: &Site) -> Result<Page, Failure> {
    let mut body = String::from("<h1>Schedule</h1>\n");
    let names = names(&site.home)?;
    if names.is_empty() {
        body.push_str(&empty(
            "No pipeline has a night yet.",
            "A pipeline with <code>schedule:</code> runs every night: <code>runner schedule run-due \
            PIPELINE</code> runs the first, <code>runner serve --schedule PIPELINE</code> all that follow.",
        ));
    }
    for name in names {
        let log = NightLog::read(&site.home, &name)?;
        let mut part = next(site, &log);
        let nights: Vec<&Night> = log.nights().rev().take(CALENDAR).collect();
        part.push_str(&open(site, &name, &log, &nights));
        part.push_str(&drawn(&nights));
        let head = ["night", "status", "due", "started", "ended", "runs", "run", "why"];
        let head: Vec<Head> = head.iter().map(|name| Head::text(name)).collect();
        let rows: Vec<Line> = nights.iter().take(NIGHTS).map(|night| Line::Row(row(night))).collect();
        part.push_str(&grid(&format!("nights of {name}"), &head, &rows));
        body.push_str(&card(&escape(&name), &part));
    }
    Ok(Page::new("Schedule", "/schedule", body))
}

/// The next night, by the pipeline file as it is now.
fn next(site: &Site, log: &NightLog) -> String {
    let Some(file) = log.file() else {
        return String::new();
    };
    let shown = escape(&file.display().to_string());
    match site.host.schedule(file) {
        Ok(schedule) => {
            let next = DueTimes(&schedule).after(Utc::now());
            let next = next.map(|due| format!("next due <strong>{}</strong> UTC", time(due.at)));
            format!(
                "<p>{} <span class=\"dim\">{shown}</span></p>\n",
                next.unwrap_or_default()
            )
        }
        Err(failure) => format!(
            "<p class=\"error\">{} <span class=\"dim\">{shown}</span></p>\n",
            escape(&failure.message)
        ),
    }
}

/// The nights that failed, were killed or whose data was late, each with its reason, and how they are run
/// again.
fn open(site: &Site, name: &str, log: &NightLog, nights: &[&Night]) -> String {
    let failed = nights.iter().filter(|night| is_failed(night.status));
    let rows: Vec<Vec<String>> = failed
        .map(|night| {
            row![
                escape(&night.night),
                status(night.status.name()),
                night.run.as_ref().map(|run| link(&run_address(run), run)),
                night.why.as_ref().map(|why| escape(why)),
            ]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let file = log.file().map(|file| file.display().to_string());
    let again = match (&file, site.allow_run) {
        (Some(_), true) => format!(
            "<form method=\"post\" action=\"/schedule/{}/retry\">{}<button>Run them again</button></form>\n",
            encode(name),
            site.form_secret()
        ),
        (Some(file), false) => format!(
            "<p><code>runner schedule run-due {file}</code> runs them again; <code>runner schedule skip \
            {file} NIGHT --why TEXT</code> leaves one out</p>\n",
            file = escape(file)
        ),
        (None, _) => String::new(),
    };
    let heading = format!("<h3>{} to run again</h3>", text::count(rows.len(), "night"));
    section(&heading, &["night", "status", "run", "why"], &rows) + &again
}

/// The colour class of nights that are run again.
const FAILED: &str = "failed";

/// The colour classes with the statuses that they stand for.
const LEGEND: [(&str, &str); 4] = [
    ("done", "done"),
    (FAILED, "failed, killed or late"),
    ("running", "running or waiting"),
    ("skipped", "skipped"),
];

/// The colour class of a status.
fn class(status: NightStatus) -> &'static str {
    match status {
        NightStatus::Done => "done",
        status if is_failed(status) => FAILED,
        NightStatus::Running | NightStatus::Waiting => "running",
        _ => "skipped",
    }
}

fn row(night: &Night) -> Vec<String> {
    row![
        escape(&night.night),
        status(night.status.name()),
        time(night.due),
        night.started.map(time),
        night.ended.map(time),
        night.attempts,
        night.run.as_ref().map(|run| link(&run_address(run), run)),
        match (&night.why, &night.decision, &night.run) {
            (None, Some(decision), Some(run)) => Some(link(&stage_address(run, THEN), decision)),
            (why, decision, _) => why.as_ref().or(decision.as_ref()).map(|told| escape(told)),
        },
    ]
}

/// The nights as a calendar, and its legend.
fn drawn(nights: &[&Night]) -> String {
    let day = |night: &&Night| {
        Some(Day {
            date: night.night.get(..10)?.parse().ok()?,
            class: class(night.status),
            title: Some(format!("{}: {}", night.night, night.status.name())),
        })
    };
    let days: Vec<Day> = nights.iter().filter_map(day).collect();
    let done = nights.iter().filter(|night| night.status == NightStatus::Done).count();
    match days.is_empty() {
        true => String::new(),
        false => calendar(&format!("{} nights, {done} done", nights.len()), &days, false) + &legend(&LEGEND),
    }
}
