//! The nights of scheduled pipelines: a calendar from green to red, and the last of them as a table.

use crate::layout::{Page, link, run_address, stage_address};
use crate::site::Site;
use chrono::Utc;
use runner_engine::{Failure, row};
use runner_history::THEN;
use runner_history::schedule::{DueTimes, Night, NightLog, NightStatus, names};
use runner_report::html::{escape, table};
use std::fmt::Write as _;

/// The number of nights of the calendar, and of the table.
const CALENDAR: usize = 370;
const NIGHTS: usize = 30;

/// The width of a week in the calendar, and the height of a day.
const CELL: i32 = 14;

pub(crate) fn schedule(site: &Site) -> Result<Page, Failure> {
    let mut body = String::from("<h1>Schedule</h1>\n");
    let names = names(&site.home)?;
    if names.is_empty() {
        body.push_str(
            "<p>No pipeline has a night yet: <code>runner schedule run-due PIPELINE</code> runs the \
            first.</p>\n",
        );
    }
    for name in names {
        let log = NightLog::read(&site.home, &name)?;
        let _ = writeln!(body, "<h2>{}</h2>", escape(&name));
        body.push_str(&next(site, &log));
        let nights: Vec<&Night> = log.nights().rev().take(CALENDAR).collect();
        body.push_str(&calendar(&nights));
        let rows: Vec<Vec<String>> = nights.iter().take(NIGHTS).map(|night| row(night)).collect();
        body.push_str(&table(
            &["night", "status", "due", "started", "ended", "runs", "run", "why"],
            &rows,
        ));
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
            let next = next.map(|due| format!("next due {} UTC", due.at.format("%Y-%m-%d %H:%M")));
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

/// The colour class of a status.
fn class(status: NightStatus) -> &'static str {
    match status {
        NightStatus::Done => "done",
        NightStatus::Failed | NightStatus::Killed | NightStatus::Late => "failed",
        NightStatus::Running | NightStatus::Waiting => "running",
        NightStatus::Skipped => "skipped",
    }
}

fn row(night: &Night) -> Vec<String> {
    let time = |at: chrono::DateTime<Utc>| at.format("%Y-%m-%d %H:%M").to_string();
    row![
        escape(&night.night),
        format!("<span class=\"{}\">{}</span>", class(night.status), night.status.name()),
        time(night.due),
        night.started.map(time),
        night.ended.map(time),
        night.attempts,
        night.run.as_ref().map(|run| link(&run_address(run), run)),
        match (&night.why, &night.decision, &night.run) {
            (None, Some(decision), Some(run)) => Some(link(&stage_address(run, THEN), decision)),
            (why, decision, _) => why.as_ref().or(decision.as_ref()).map(|text| escape(text)),
        },
    ]
}

/// A column for each week, a cell for each night.
fn calendar(nights: &[&Night]) -> String {
    let date = |night: &Night| {
        night
            .night
            .get(..10)
            .and_then(|date| date.parse::<datasets::Date>().ok())
    };
    let dates: Vec<i32> = nights.iter().filter_map(|night| Some(date(night)?.0)).collect();
    let (Some(first), Some(last)) = (dates.iter().min(), dates.iter().max()) else {
        return String::new();
    };
    // Day 0 was a Thursday; weeks begin on Mondays.
    let week = |day: i32| (day + 3).div_euclid(7);
    let columns = week(*last) - week(*first) + 1;
    let size = CELL - 2;
    let done = nights.iter().filter(|night| night.status == NightStatus::Done).count();
    let mut out = format!(
        "<div class=\"wide\" tabindex=\"0\"><svg class=\"nights\" style=\"width:{0}px\" viewBox=\"0 0 {0} \
        {1}\" role=\"img\" aria-label=\"{2} nights, {done} done\">",
        columns * CELL,
        7 * CELL,
        nights.len()
    );
    for night in nights {
        let Some(day) = date(night).map(|date| date.0) else {
            continue;
        };
        let _ = write!(
            out,
            "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{size}\" height=\"{size}\" rx=\"2\"><title>{}: \
            {}</title></rect>",
            class(night.status),
            (week(day) - week(*first)) * CELL + 1,
            (day + 3).rem_euclid(7) * CELL + 1,
            escape(&night.night),
            night.status.name()
        );
    }
    out.push_str("</svg></div>\n");
    out
}
