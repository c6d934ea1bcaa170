//! The time of a snapshot of a chain, and the time zones of exchanges.

use crate::Date;
use chrono::{DateTime, NaiveDateTime, TimeDelta, TimeZone as _, Utc};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};
use std::fmt;

const SECOND: i64 = 1_000_000;
const DAY: f64 = 86_400e6;
const HOUR: f64 = 3_600e6;

/// The time of a snapshot: its day in the time zone of the exchange and, if a chain has several snapshots a
/// day, its instant. Either all snapshots of a chain have an instant, or none has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SnapshotTime {
    /// The day.
    pub date: Date,
    /// Microseconds since 1970-01-01 00:00 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instant: Option<i64>,
}

impl SnapshotTime {
    /// The time of a day's only snapshot.
    pub const fn of_day(date: Date) -> Self {
        Self { date, instant: None }
    }

    /// Days since 1970-01-01, for differences: with the fraction of the day for an instant, whole for a day
    /// alone.
    pub fn days(self) -> f64 {
        match self.instant {
            Some(instant) => instant as f64 / DAY,
            None => f64::from(self.date.0),
        }
    }

    /// The last day whose daily data (rates, bars, features of bars) may be used: the only snapshot of a day
    /// stands for that day; an instant knows the days before its own, as daily data is known at the end of
    /// its day.
    pub fn last_known_day(self) -> Date {
        match self.instant {
            Some(_) => self.date.plus(-1),
            None => self.date,
        }
    }
}

impl fmt::Display for SnapshotTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.instant.and_then(DateTime::from_timestamp_micros) {
            Some(instant) => f.pad(&instant.format("%Y-%m-%d %H:%M:%S%.f UTC").to_string()),
            None => fmt::Display::fmt(&self.date, f),
        }
    }
}

/// A time zone of the IANA database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeZone(Tz);

impl TimeZone {
    /// Coordinated universal time.
    pub const UTC: Self = Self(Tz::UTC);

    /// The zone with an IANA name such as `America/New_York`; `None` if there is no such zone.
    pub fn named(name: &str) -> Option<Self> {
        name.parse().ok().map(Self)
    }

    /// The local time of an instant, in hours after midnight of `date`.
    pub fn hours(self, instant: i64, date: Date) -> f64 {
        let utc = DateTime::<Utc>::from_timestamp_micros(instant).unwrap_or_default();
        let local = utc.with_timezone(&self.0).naive_local();
        micros(local.signed_duration_since(midnight(date))) as f64 / HOUR
    }

    /// The local date of an instant, and the wall-clock time in microseconds after its midnight.
    pub fn local(self, instant: i64) -> (Date, i64) {
        let utc = DateTime::<Utc>::from_timestamp_micros(instant).unwrap_or_default();
        let local = utc.with_timezone(&self.0).naive_local();
        let date = Date::from(local.date());
        (date, micros(local.signed_duration_since(midnight(date))))
    }

    /// The instant, in microseconds since 1970 UTC, at which the local time on `date` is `micros`
    /// microseconds after midnight. If an hour occurs twice, the first occurrence counts; `None` if the zone
    /// skips the time.
    pub fn at(self, date: Date, micros: i64) -> Option<i64> {
        let local = midnight(date) + TimeDelta::microseconds(micros);
        Some(self.0.from_local_datetime(&local).earliest()?.timestamp_micros())
    }

    /// The instant, in microseconds since 1970 UTC, at which the local time on `date` is `hours` after
    /// midnight. A time that is skipped when clocks go forward is taken one hour later.
    pub fn instant(self, date: Date, hours: f64) -> i64 {
        let local = (hours * HOUR).round() as i64;
        self.at(date, local)
            .or_else(|| self.at(date, local + HOUR as i64))
            .unwrap_or_else(|| midnight(date).and_utc().timestamp_micros() + local)
    }
}

impl From<Tz> for TimeZone {
    fn from(zone: Tz) -> Self {
        Self(zone)
    }
}

impl fmt::Display for TimeZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0.name())
    }
}

impl Serialize for TimeZone {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Parses an ISO 8601 text with a day and a time to an instant in microseconds since 1970 UTC; without an
/// offset, the text is in UTC. `None` for any other text.
pub fn parse_instant(text: &str) -> Option<i64> {
    let text = text.trim();
    let with_offset = DateTime::parse_from_rfc3339(text)
        .or_else(|_| DateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f%z"))
        .or_else(|_| DateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f%z"));
    if let Ok(instant) = with_offset {
        return Some(instant.timestamp_micros());
    }
    let formats = [
        "%Y-%m-%d %H:%M:%S%.f",
        "%Y-%m-%dT%H:%M:%S%.f",
        "%Y-%m-%d %H:%M",
        "%Y-%m-%dT%H:%M",
    ];
    let read = |format: &&str| NaiveDateTime::parse_from_str(text, format).ok();
    Some(formats.iter().find_map(read)?.and_utc().timestamp_micros())
}

fn midnight(date: Date) -> NaiveDateTime {
    chrono::NaiveDate::from(date).and_time(chrono::NaiveTime::MIN)
}

fn micros(duration: TimeDelta) -> i64 {
    duration
        .num_microseconds()
        .unwrap_or_else(|| duration.num_seconds().saturating_mul(SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_of_texts() {
        let at = Some(1_561_751_100_000_000);
        for text in [
            "2019-06-28T19:45:00Z",
            "2019-06-28T15:45:00-04:00",
            "2019-06-28 15:45:00-0400",
            "2019-06-28 19:45:00.000+00:00",
            "2019-06-28 19:45:00",
            "2019-06-28T19:45",
        ] {
            assert_eq!(parse_instant(text), at, "{text}");
        }
        for text in ["2019-06-28", "19:45", "", "2019-06-31 19:45"] {
            assert_eq!(parse_instant(text), None, "{text}");
        }
    }

    #[test]
    fn local_times_follow_the_clocks_of_the_zone() {
        let zone = TimeZone::named("America/New_York").unwrap();
        let date = |text: &str| text.parse::<Date>().unwrap();
        for (day, hours, utc) in [
            ("2019-01-15", 10.0, "2019-01-15 15:00:00 UTC"),
            ("2019-07-15", 15.75, "2019-07-15 19:45:00 UTC"),
            // At 2:30 on this day, clocks had gone from 2:00 to 3:00.
            ("2019-03-10", 2.5, "2019-03-10 07:30:00 UTC"),
        ] {
            let instant = zone.instant(date(day), hours);
            let at = SnapshotTime {
                date: date(day),
                instant: Some(instant),
            };
            assert_eq!(at.to_string(), utc);
            if hours > 3.0 {
                assert_eq!(zone.hours(instant, date(day)), hours);
            }
        }
        let shanghai = TimeZone::named("Asia/Shanghai").unwrap();
        assert_eq!(shanghai.hours(0, Date(0)), 8.0);
        assert!(TimeZone::named("Mars/Olympus").is_none());
    }

    #[test]
    fn days_are_known_at_their_end() {
        let daily = SnapshotTime::of_day(Date(10));
        let instant = SnapshotTime {
            date: Date(10),
            instant: Some(10 * 86_400_000_000 + 43_200_000_000),
        };
        assert_eq!((daily.days(), instant.days()), (10.0, 10.5));
        assert_eq!((daily.last_known_day(), instant.last_known_day()), (Date(10), Date(9)));
        assert!(SnapshotTime::of_day(Date(9)) < daily && daily < instant);
    }
}
