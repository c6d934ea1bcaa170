//! The nights of scheduled pipelines: a calendar from green to red, and the last of them as a table.

use crate::layout::{Page, encode, link, run_address, stage_address};
use crate::site::Site;
use chrono::Utc;
use runner_engine::{Failure, row, text};
use runner_history::THEN;
use runner_history::schedule::{DueTimes, Night, NightLog, NightStatus, names};
use runner_report::html::{escape, section, table};
use std::fmt::Write as _;

/// The number of nights of the calendar, and of the table.
const CALENDAR: usize = 370;
const NIGHTS: usize = 30;

/// The width of a week in the calendar, and the height of a day.
const CELL: i32 = 14;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

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
        body.push_str(&open(site, &name, &log, &nights));
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

/// The nights that failed, were killed or whose data was late, each with its reason, and how they are run
/// again.
fn open(site: &Site, name: &str, log: &NightLog, nights: &[&Night]) -> String {
    let failed = nights.iter().filter(|night| class(night.status) == FAILED);
    let rows: Vec<Vec<String>> = failed
        .map(|night| {
            row![
                escape(&night.night),
                format!("<span class=\"{FAILED}\">{}</span>", night.status.name()),
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
        NightStatus::Failed | NightStatus::Killed | NightStatus::Late => FAILED,
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
            (why, decision, _) => why.as_ref().or(decision.as_ref()).map(|told| escape(told)),
        },
    ]
}

/// A column for each week, a cell for each night, under the names of the months; and the legend.
fn calendar(nights: &[&Night]) -> String {
    let date = |night: &Night| night.night.get(..10)?.parse::<datasets::Date>().ok();
    let dates: Vec<i32> = nights.iter().filter_map(|night| Some(date(night)?.0)).collect();
    let (Some(&first), Some(&last)) = (dates.iter().min(), dates.iter().max()) else {
        return String::new();
    };
    // Day 0 was a Thursday; weeks begin on Mondays.
    let column = |day: i32| (day + 3).div_euclid(7) - (first + 3).div_euclid(7);
    let (columns, size) = (column(last) + 1, CELL - 2);
    let done = nights.iter().filter(|night| night.status == NightStatus::Done).count();
    let mut out = format!(
        "<div class=\"wide\" tabindex=\"0\"><svg class=\"nights\" width=\"{0}\" viewBox=\"0 0 {0} \
        {1}\" role=\"img\" aria-label=\"{2} nights, {done} done\">",
        columns.max(2) * CELL,
        8 * CELL,
        nights.len()
    );
    // A month that has less than two columns has no room for its name.
    let mut months: Vec<i32> = (first + 1..=last)
        .filter(|day| datasets::Date(*day).ymd().2 == 1 && column(*day) + 2 <= columns)
        .collect();
    if months.first().is_none_or(|next| column(*next) >= 2) {
        months.insert(0, first);
    }
    for day in months {
        let (year, month, _) = datasets::Date(day).ymd();
        let name = match month {
            1 => year.to_string(),
            month => MONTHS[month as usize - 1].to_owned(),
        };
        let x = column(day) * CELL + 1;
        let _ = write!(out, "<text x=\"{x}\" y=\"{}\">{name}</text>", CELL - 4);
    }
    for night in nights {
        let Some(day) = date(night).map(|date| date.0) else {
            continue;
        };
        let _ = write!(
            out,
            "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{size}\" height=\"{size}\" rx=\"2\"><title>{}: \
            {}</title></rect>",
            class(night.status),
            column(day) * CELL + 1,
            ((day + 3).rem_euclid(7) + 1) * CELL + 1,
            escape(&night.night),
            night.status.name()
        );
    }
    out.push_str("</svg></div>\n<p class=\"parts\">");
    for (class, name) in LEGEND {
        let _ = write!(
            out,
            "<svg class=\"nights\" width=\"{CELL}\" height=\"{CELL}\" viewBox=\"0 0 {CELL} {CELL}\" \
            aria-hidden=\"true\"><rect class=\"{class}\" x=\"1\" y=\"1\" width=\"{size}\" height=\"{size}\" \
            rx=\"2\"/></svg> {name} "
        );
    }
    out.push_str("<span class=\"dim\">a column is a week, from Monday</span></p>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calendar_has_months_and_a_legend() {
        let first: datasets::Date = "2024-01-29".parse().unwrap();
        let statuses = [NightStatus::Done, NightStatus::Late, NightStatus::Skipped];
        let night = |day: i32| Night {
            night: first.plus(day).to_string(),
            due: chrono::DateTime::UNIX_EPOCH,
            status: statuses[day as usize % 3],
            started: None,
            ended: None,
            run: None,
            attempts: 0,
            why: None,
            decision: None,
            is_of_run: false,
            is_ahead: false,
        };
        // Eleven weeks: January has no column of its own.
        let nights: Vec<Night> = (0..73).map(night).collect();
        let html = calendar(&nights.iter().collect::<Vec<_>>());
        let texts: Vec<&str> = html.split("<text ").skip(1).collect();
        let texts: Vec<&str> = texts
            .iter()
            .map(|text| text.split(['>', '<']).nth(1).unwrap())
            .collect();
        assert_eq!(texts, ["Feb", "Mar", "Apr"]);
        for (class, name) in LEGEND {
            assert!(
                html.contains(&format!("class=\"{class}\"")) && html.contains(name),
                "{html}"
            );
        }
    }
}
