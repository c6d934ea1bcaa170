//! The times at which a schedule is due.
//!
//! Times are local. If an hour occurs twice because clocks go back, its first occurrence counts; a time that
//! is skipped because clocks go forward is due when the skipped hour is over. Times that fall on one instant
//! count as one.

use chrono::{DateTime, Utc};
use datasets::calendar::{is_trading_day, local_hour};
use datasets::contract::TimeOfDay;
use datasets::{Date, TimeZone};
use runner_pipeline::{NightDates, Schedule, When};
use std::collections::BTreeMap;

/// The number of days that are searched for a night: more than the eight years between two leap days around
/// 2100.
const HORIZON: i32 = 3_000;

const MINUTE: i64 = 60_000_000;
const DAY: u32 = 24 * 60;

/// A night and the time at which it is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// The night's name: its date, `2026-11-25`, with the time, `2026-11-25T18:30`, if a day has several
    /// nights. Names sort by time.
    pub night: String,
    /// The instant at which the night is due.
    pub at: DateTime<Utc>,
    /// The date of the night and the date of the night before.
    pub dates: NightDates,
}

/// The due times of a schedule.
#[derive(Clone, Copy)]
pub struct DueTimes<'s>(pub &'s Schedule);

impl DueTimes<'_> {
    /// The first night that is due after an instant.
    pub fn after(self, instant: DateTime<Utc>) -> Option<Due> {
        let first = self.local_date(instant).plus(-1);
        let first = self.0.from.map_or(first, |from| first.max(from));
        let days = (0..HORIZON).map(|day| first.plus(day));
        days.flat_map(|date| self.of(date)).find(|due| due.at > instant)
    }

    /// The last night that is due at or before an instant.
    pub fn latest(self, instant: DateTime<Utc>) -> Option<Due> {
        let last = self.local_date(instant).plus(1);
        let days = (0..HORIZON).map(|day| last.plus(-day));
        let days = days.take_while(|date| self.0.from.is_none_or(|from| *date >= from));
        days.flat_map(|date| self.of(date).into_iter().rev())
            .find(|due| due.at <= instant)
    }

    /// The nights from a date on that are due at or before an instant, in order.
    pub fn until(self, from: Date, instant: DateTime<Utc>) -> Vec<Due> {
        let last = self.local_date(instant).plus(1);
        let mut all = Vec::new();
        let mut previous = None;
        for date in (from.0..=last.0).map(Date) {
            let times = self.times(date);
            if times.is_empty() {
                continue;
            }
            let before = previous.unwrap_or_else(|| self.previous(date));
            let due_times = times
                .into_iter()
                .map(|(at, minutes)| self.due(date, before, at, minutes));
            all.extend(due_times.filter(|due| due.at <= instant));
            previous = Some(date);
        }
        all
    }

    /// The nights of a local date, in order.
    pub fn of(self, date: Date) -> Vec<Due> {
        let times = self.times(date);
        if times.is_empty() {
            return Vec::new();
        }
        let previous = self.previous(date);
        let due = |(at, minutes)| self.due(date, previous, at, minutes);
        times.into_iter().map(due).collect()
    }

    /// The night with the name `night`; `None` if the schedule has no such night.
    pub fn named(self, night: &str) -> Option<Due> {
        let due_times = self.of(date_of(night)?);
        due_times.into_iter().find(|due| due.night == night)
    }

    /// The local date of an instant.
    pub fn local_date(self, instant: DateTime<Utc>) -> Date {
        self.0.zone().local(instant.timestamp_micros()).0
    }

    /// The instant of a local time on a date.
    pub fn instant(self, date: Date, time: TimeOfDay) -> DateTime<Utc> {
        at(self.0.zone(), date, minutes_of(time))
    }

    fn due(self, date: Date, previous: Date, at: DateTime<Utc>, minutes: u32) -> Due {
        let night = match self.0.when() {
            When::Cron(cron) if !cron.is_daily() => format!("{date}T{:02}:{:02}", minutes / 60, minutes % 60),
            _ => date.to_string(),
        };
        Due {
            night,
            at,
            dates: NightDates { date, previous },
        }
    }

    /// The date of the last night before a date; the day before if there is no earlier night.
    fn previous(self, date: Date) -> Date {
        let before = (1..HORIZON).map(|days| date.plus(-days));
        before
            .into_iter()
            .find(|date| self.has_night(*date))
            .unwrap_or(date.plus(-1))
    }

    fn has_night(self, date: Date) -> bool {
        let is_due = match self.0.when() {
            When::Cron(cron) => {
                let (_, month, day) = date.ymd();
                cron.has_day(month, day, (date.weekday() + 1) % 7)
            }
            When::At(_) | When::AfterClose(_) => true,
        };
        is_due && is_trading_day(self.0.calendar(), date)
    }

    /// The instants of a date, each with its local time in minutes after midnight.
    fn times(self, date: Date) -> BTreeMap<DateTime<Utc>, u32> {
        if !self.has_night(date) {
            return BTreeMap::new();
        }
        let of = |minutes: u32| (at(self.0.zone(), date, minutes), minutes);
        match self.0.when() {
            When::At(time) => [of(minutes_of(time))].into(),
            When::AfterClose(after) => {
                let Some((session, zone)) = self.0.calendar().session().and_then(|session| {
                    let zone = TimeZone::named(session.time_zone)?;
                    Some((session, zone))
                }) else {
                    return BTreeMap::new();
                };
                let close = local_hour(self.0.calendar(), date, session.close.hours());
                let close = at(zone, date, (close * 60.0).round() as u32);
                [(close + after, 0)].into()
            }
            // If several times fall on one instant, the latest is kept: the clocks skipped the others.
            When::Cron(cron) => cron.minutes().map(of).collect(),
        }
    }
}

/// The date in the name of a night.
pub(super) fn date_of(night: &str) -> Option<Date> {
    night.get(..10)?.parse().ok()
}

fn minutes_of(time: TimeOfDay) -> u32 {
    (time.hours() * 60.0).round() as u32
}

/// The instant of a local time; for a time that the zone skips, the first instant after the skipped times.
fn at(zone: TimeZone, date: Date, minutes: u32) -> DateTime<Utc> {
    let instant = (minutes..=minutes + DAY).find_map(|minutes| zone.at(date, i64::from(minutes) * MINUTE));
    let micros =
        instant.unwrap_or_else(|| (i64::from(date.0) * i64::from(DAY) + i64::from(minutes)) * MINUTE);
    DateTime::from_timestamp_micros(micros).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::calendar::CalendarName;
    use runner_pipeline::Cron;
    use std::time::Duration;

    fn schedule(when: When, zone: &str, calendar: CalendarName) -> Schedule {
        Schedule {
            at: Some(when),
            timezone: TimeZone::named(zone),
            calendar: Some(calendar),
            ..Schedule::default()
        }
    }

    fn instant(text: &str) -> DateTime<Utc> {
        DateTime::parse_from_rfc3339(text).unwrap().to_utc()
    }

    fn cron(text: &str) -> When {
        When::Cron(Cron::parse(text).unwrap())
    }

    fn at(text: &str) -> When {
        When::At(text.parse().unwrap())
    }

    /// The next nights after an instant.
    fn next(schedule: &Schedule, from: &str, count: usize) -> String {
        let mut now = instant(from);
        let mut text = String::new();
        for _ in 0..count {
            let due = DueTimes(schedule).after(now).unwrap();
            assert_eq!(DueTimes(schedule).latest(due.at), Some(due.clone()));
            let before = DueTimes(schedule).latest(due.at - Duration::from_micros(1)).unwrap();
            assert!(before.at <= now, "{before:?} is between");
            text.push_str(&format!("{} {} after {}\n", due.night, due.at, due.dates.previous));
            now = due.at;
        }
        text
    }

    #[test]
    fn trading_days_and_clocks_that_change() {
        // Clocks go forward on Sunday, 8 March 2026.
        let schedule = schedule(at("18:30"), "America/New_York", CalendarName::Us);
        insta::assert_snapshot!(next(&schedule, "2026-03-06T12:00:00Z", 3), @r"
        2026-03-06 2026-03-06 23:30:00 UTC after 2026-03-05
        2026-03-09 2026-03-09 22:30:00 UTC after 2026-03-06
        2026-03-10 2026-03-10 22:30:00 UTC after 2026-03-09
        ");
        // Thanksgiving, and Christmas Day on a Friday.
        insta::assert_snapshot!(next(&schedule, "2026-11-25T23:30:00Z", 2), @r"
        2026-11-27 2026-11-27 23:30:00 UTC after 2026-11-25
        2026-11-30 2026-11-30 23:30:00 UTC after 2026-11-27
        ");
    }

    #[test]
    fn half_days() {
        let after = When::AfterClose(Duration::from_secs(9_000));
        let schedule = schedule(after, "Europe/Berlin", CalendarName::Us);
        // 16:00, then 13:00 New York time, and two and a half hours.
        insta::assert_snapshot!(next(&schedule, "2026-11-25T12:00:00Z", 2), @r"
        2026-11-25 2026-11-25 23:30:00 UTC after 2026-11-24
        2026-11-27 2026-11-27 20:30:00 UTC after 2026-11-25
        ");
    }

    #[test]
    fn hours_that_are_skipped_or_come_twice() {
        let berlin = |when| schedule(when, "Europe/Berlin", CalendarName::Always);
        // From 2:00 to 3:00 on 29 March 2026.
        insta::assert_snapshot!(next(&berlin(at("2:30")), "2026-03-28T00:00:00Z", 3), @r"
        2026-03-28 2026-03-28 01:30:00 UTC after 2026-03-27
        2026-03-29 2026-03-29 01:00:00 UTC after 2026-03-28
        2026-03-30 2026-03-30 00:30:00 UTC after 2026-03-29
        ");
        // From 3:00 back to 2:00 on 25 October 2026: once.
        insta::assert_snapshot!(next(&berlin(at("2:30")), "2026-10-24T12:00:00Z", 2), @r"
        2026-10-25 2026-10-25 00:30:00 UTC after 2026-10-24
        2026-10-26 2026-10-26 01:30:00 UTC after 2026-10-25
        ");
        insta::assert_snapshot!(next(&berlin(cron("*/30 1-3 * * *")), "2026-03-29T00:10:00Z", 4), @r"
        2026-03-29T01:30 2026-03-29 00:30:00 UTC after 2026-03-28
        2026-03-29T03:00 2026-03-29 01:00:00 UTC after 2026-03-28
        2026-03-29T03:30 2026-03-29 01:30:00 UTC after 2026-03-28
        2026-03-30T01:00 2026-03-29 23:00:00 UTC after 2026-03-29
        ");
        // A day that a zone skipped: 30 December 2011.
        let apia = schedule(at("18:00"), "Pacific/Apia", CalendarName::Always);
        insta::assert_snapshot!(next(&apia, "2011-12-29T00:00:00Z", 3), @r"
        2011-12-28 2011-12-29 04:00:00 UTC after 2011-12-27
        2011-12-29 2011-12-30 04:00:00 UTC after 2011-12-28
        2011-12-30 2011-12-30 10:00:00 UTC after 2011-12-29
        ");
    }

    #[test]
    fn leap_days() {
        let schedule = schedule(cron("0 6 29 2 *"), "UTC", CalendarName::Always);
        insta::assert_snapshot!(next(&schedule, "2023-01-01T00:00:00Z", 2), @r"
        2024-02-29 2024-02-29 06:00:00 UTC after 2020-02-29
        2028-02-29 2028-02-29 06:00:00 UTC after 2024-02-29
        ");
        assert_eq!(
            DueTimes(&schedule)
                .after(instant("2096-03-01T00:00:00Z"))
                .unwrap()
                .night,
            "2104-02-29"
        );
        let daily = self::schedule(at("18:00"), "UTC", CalendarName::Us);
        assert_eq!(
            next(&daily, "2024-02-28T19:00:00Z", 1),
            "2024-02-29 2024-02-29 18:00:00 UTC after 2024-02-28\n"
        );
    }

    #[test]
    fn all_nights_are_those_of_each_day() {
        let mut schedule = schedule(at("18:30"), "America/New_York", CalendarName::Us);
        let from = "2025-12-30".parse().unwrap();
        let now = instant("2026-12-31T23:29:59Z");
        let all = DueTimes(&schedule).until(from, now);
        let mut stepped = Vec::new();
        let mut last = instant("2025-12-30T00:00:00Z");
        while let Some(due) = DueTimes(&schedule).after(last).filter(|due| due.at <= now) {
            last = due.at;
            stepped.push(due);
        }
        assert_eq!(all, stepped);
        // 251 trading days of 2026 and two before, without the last, which is due in a second.
        assert_eq!(all.len(), 251 + 2 - 1);
        schedule.from = Some("2026-12-30".parse().unwrap());
        assert_eq!(DueTimes(&schedule).latest(instant("2026-12-30T12:00:00Z")), None);
        assert_eq!(
            DueTimes(&schedule)
                .after(last - Duration::from_secs(90 * 86_400))
                .unwrap()
                .night,
            "2026-12-30"
        );
    }
}
