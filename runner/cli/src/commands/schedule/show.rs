//! `runner schedule next`, `list` and `log`.

use super::entry::{Entry, ScheduledArgs, clock, entries};
use super::install;
use crate::output;
use crate::session::Session;
use chrono::{DateTime, Utc};
use clap::Args;
use datasets::Date;
use runner_engine::{Failure, row, text, timestamp};
use runner_history::schedule::{Due, DueTimes, Night};
use runner_pipeline::Schedule;
use serde_json::{Value, json};

/// Print the next nights of pipelines, in local time and UTC.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner schedule next nightly.yaml
  runner schedule next nightly.yaml --count 5 --now 2026-03-06T00:00:00Z --json")]
pub(crate) struct NextArgs {
    #[command(flatten)]
    pub scheduled: ScheduledArgs,
    /// The number of nights of each pipeline.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub count: usize,
}

/// Print the history of nights, with the reason of each failure.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner schedule log nightly.yaml
  runner schedule log nightly.yaml --last 400 --json")]
pub(crate) struct NightsArgs {
    #[command(flatten)]
    pub scheduled: ScheduledArgs,
    /// The number of nights of each pipeline.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub last: usize,
}

/// The next nights.
pub(super) fn next(session: &Session, args: &NextArgs) -> Result<(), Failure> {
    let now = clock(&args.scheduled).now();
    let (mut rows, mut all) = (Vec::new(), Vec::new());
    for entry in entries(session, &args.scheduled)? {
        let schedule = &entry.scheduled.schedule;
        let nights = following(schedule, now, args.count);
        warn_beyond(&entry, nights.iter().map(|due| due.dates.date));
        for due in nights {
            rows.push(row![
                entry.scheduled.name,
                due.night,
                local(schedule, due.at),
                utc(due.at),
                due.dates.previous,
            ]);
            let mut value = due_json(schedule, &due);
            value["pipeline"] = json!(entry.scheduled.name);
            value["file"] = json!(entry.file);
            all.push(value);
        }
    }
    if session.json {
        return output::print_json(&all);
    }
    let head = ["pipeline", "night", "local time", "UTC", "night before"];
    output::print(&text::table(&head, &rows, &[]))
}

/// Warns of the first of these nights that is beyond the years of the schedule's calendar: it may be one of a
/// holiday.
pub(super) fn warn_beyond(entry: &Entry, dates: impl IntoIterator<Item = Date>) {
    let calendar = entry.scheduled.schedule.calendar();
    let beyond = dates.into_iter().find(|date| !calendar.covers(*date));
    if let Some((date, (first, last))) = beyond.zip(calendar.range()) {
        output::warn(&format!(
            "{}: the calendar `{name}` covers {first} to {last}: the night {date} may be one of a holiday; \
            `calendar: {{ base: {name}, closed: [DATE, …] }}` adds what the exchange has announced",
            entry.scheduled.name,
            name = calendar.name(),
        ));
    }
}

fn following(schedule: &Schedule, now: DateTime<Utc>, count: usize) -> Vec<Due> {
    let times = DueTimes(schedule);
    let first = times.after(now);
    std::iter::successors(first, |due| times.after(due.at))
        .take(count)
        .collect()
}

pub(super) fn due_json(schedule: &Schedule, due: &Due) -> Value {
    json!({
        "night": due.night,
        "due": timestamp(due.at),
        "local": local(schedule, due.at),
        "date": due.dates.date,
        "previous": due.dates.previous,
    })
}

/// An instant in the schedule's time zone.
pub(super) fn local(schedule: &Schedule, at: DateTime<Utc>) -> String {
    let (date, micros) = schedule.zone().local(at.timestamp_micros());
    let minutes = micros / 60_000_000;
    format!("{date} {:02}:{:02} {}", minutes / 60, minutes % 60, schedule.zone())
}

fn utc(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M").to_string()
}

/// The scheduled pipelines.
pub(super) fn list(session: &Session, args: &ScheduledArgs) -> Result<(), Failure> {
    let now = clock(args).now();
    let (mut rows, mut all) = (Vec::new(), Vec::new());
    for entry in entries(session, args)? {
        let Entry { file, scheduled, .. } = &entry;
        let schedule = &scheduled.schedule;
        let log = entry.log()?;
        let last = log.nights().next_back();
        let next = DueTimes(schedule).after(now);
        warn_beyond(&entry, next.as_ref().map(|due| due.dates.date));
        let timers = install::installed(session, &scheduled.name);
        let none = || "none".to_owned();
        let night = last.map(|night| format!("{} {}", night.night, night.status.name()));
        let due = next.as_ref().map(|due| local(schedule, due.at));
        rows.push(row![
            scheduled.name,
            format!("{} {}, {}", schedule.when(), schedule.zone(), schedule.calendar()),
            night.unwrap_or_else(none),
            due.unwrap_or_else(none),
            Some(timers.join(", "))
                .filter(|_| !timers.is_empty())
                .unwrap_or_else(none),
            file.display().to_string(),
        ]);
        all.push(json!({
            "pipeline": scheduled.name,
            "file": file,
            "calendar": schedule.calendar(),
            "timezone": schedule.zone(),
            "last": last,
            "next": next.map(|due| due_json(schedule, &due)),
            "timers": timers,
        }));
    }
    if session.json {
        return output::print_json(&all);
    }
    let head = ["pipeline", "schedule", "last night", "next", "timer", "file"];
    output::print(&text::table(&head, &rows, &[]))
}

/// The nights of pipelines.
pub(super) fn log(session: &Session, args: &NightsArgs) -> Result<(), Failure> {
    let (mut rows, mut reasons, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for entry in entries(session, &args.scheduled)? {
        let log = entry.log()?;
        let mut nights: Vec<&Night> = log.nights().rev().take(args.last).collect();
        nights.reverse();
        for night in nights {
            rows.push(row(&entry, night));
            reasons.push(night.why.clone().filter(|_| !night.status.is_settled()));
            let mut value = json!(night);
            value["pipeline"] = json!(entry.scheduled.name);
            all.push(value);
        }
    }
    if session.json {
        return output::print_json(&all);
    }
    let head = [
        "pipeline",
        "night",
        "due (UTC)",
        "started",
        "ended",
        "status",
        "run",
        "note",
    ];
    let mut table = text::table_rows(&head, &rows, &[]).into_iter();
    let mut out = table.next().unwrap_or_default();
    for (row, reason) in table.zip(reasons) {
        out.push_str(&row);
        // In full: the width of a column would cut it, or push the others apart.
        for line in reason.iter().flat_map(|reason| reason.lines()) {
            out.push_str(&format!("    {line}\n"));
        }
    }
    output::print(&out)
}

fn row(entry: &Entry, night: &Night) -> Vec<String> {
    let why = night.why.as_ref().filter(|_| night.status.is_settled());
    let mut note = why.or(night.decision.as_ref()).cloned().unwrap_or_default();
    if night.attempts > 1 {
        let separator = if note.is_empty() { "" } else { "; " };
        note.push_str(&format!("{separator}{}", text::count(night.attempts as usize, "run")));
    }
    row![
        entry.scheduled.name,
        night.night,
        utc(night.due),
        night.started.map(utc),
        night.ended.map(utc),
        night.status.name(),
        night.run,
        note,
    ]
}
