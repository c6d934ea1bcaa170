//! User timers of systemd.

use super::entry::Entry;
use super::unit::Call;
use datasets::calendar::{CalendarName, usual_half_day};
use runner_pipeline::When;
use std::time::Duration;

/// The name of a pipeline's units.
pub(super) fn unit(name: &str) -> String {
    format!("runner-{name}")
}

/// The service unit.
pub(super) fn service(call: &Call) -> String {
    let variable =
        |(name, value): &(&str, String)| format!("Environment={}\n", quoted(&format!("{name}={value}")));
    let env: String = call.env.iter().map(variable).collect();
    format!(
        include_str!("systemd.service"),
        name = call.name,
        // A path of its own: neither quoted nor split.
        folder = call.folder.display().to_string().replace('%', "%%"),
        env = env,
        program = quoted(&call.program.display().to_string()),
        file = quoted(&call.file.display().to_string()),
    )
}

/// The timer unit. `run-due` does nothing on days without a night, so that it names times alone.
pub(super) fn timer(call: &Call, entry: &Entry) -> String {
    let times = calendar_times(entry);
    let times: String = times.iter().map(|time| format!("OnCalendar={time}\n")).collect();
    format!(include_str!("systemd.timer"), name = call.name, times = times)
}

/// The times of a day, as systemd's calendar events.
fn calendar_times(entry: &Entry) -> Vec<String> {
    let schedule = &entry.scheduled.schedule;
    match schedule.when() {
        When::At(time) => vec![format!("*-*-* {time}:00 {}", schedule.zone())],
        When::AfterClose(after) => after_close(schedule.calendar(), after),
        When::Cron(cron) => {
            let mut hours: Vec<(u32, Vec<u32>)> = Vec::new();
            for minutes in cron.minutes() {
                match hours.last_mut() {
                    Some((hour, of_hour)) if *hour == minutes / 60 => of_hour.push(minutes % 60),
                    _ => hours.push((minutes / 60, vec![minutes % 60])),
                }
            }
            // All hours have the same minutes.
            let list = |values: &mut dyn Iterator<Item = u32>| {
                values.map(|value| format!("{value:02}")).collect::<Vec<_>>().join(",")
            };
            let minutes = hours.first().map(|(_, minutes)| minutes.clone()).unwrap_or_default();
            vec![format!(
                "*-*-* {}:{}:00 {}",
                list(&mut hours.iter().map(|(hour, _)| *hour)),
                list(&mut minutes.into_iter()),
                schedule.zone()
            )]
        }
    }
}

/// The times after the usual close and after that of half days, in the exchange's time zone.
fn after_close(calendar: CalendarName, after: Duration) -> Vec<String> {
    let Some(session) = calendar.session() else {
        return Vec::new();
    };
    let usual = (session.close.hours() * 60.0).round() as u64;
    let half_day = usual_half_day(calendar).map(|close| (close.hours() * 60.0).round() as u64);
    let closes = half_day.into_iter().chain([usual]);
    let times = closes.map(|close| {
        let seconds = (close * 60 + after.as_secs()) % 86_400;
        let (minutes, seconds) = (seconds / 60, seconds % 60);
        format!(
            "*-*-* {:02}:{:02}:{seconds:02} {}",
            minutes / 60,
            minutes % 60,
            session.time_zone
        )
    });
    times.collect()
}

/// A word of a unit file: `%` starts a specifier, and `$` a variable.
fn quoted(text: &str) -> String {
    let mut out = "\"".to_owned();
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '%' | '$' => out.extend([c, c]),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
