//! Parsing of times of day and instants in vendors' notations, to the microsecond.

use crate::value::{shown, zone_of};
use chrono::{DateTime, NaiveDateTime, NaiveTime, SecondsFormat, Timelike as _, Utc};
use chrono_tz::Tz;
use datasets::layout::EPOCHS;

/// The number of microseconds in a second.
pub(crate) const SECOND: i64 = 1_000_000;
/// The number of microseconds in a minute.
pub(crate) const MINUTE: i64 = 60 * SECOND;
/// The number of microseconds in an hour.
pub(crate) const HOUR: i64 = 60 * MINUTE;
/// The number of microseconds in a day.
pub(crate) const DAY: i64 = 24 * HOUR;

/// The smallest number that is taken for an epoch rather than a time of day: seconds from 1973 on.
const LEAST_EPOCH: f64 = 1e8;

/// The time of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    /// Microseconds after midnight, as in the file or, for an epoch, in the layout's time zone.
    pub local: i64,
    /// Microseconds since 1970-01-01 00:00 UTC, for a value that is an instant in itself: an epoch, or a time
    /// with an offset.
    pub instant: Option<i64>,
}

/// Parses times, with a shortcut for repeated texts.
pub(crate) struct Clocks<'a> {
    formats: &'a [String],
    zone: Tz,
    has_epochs: bool,
    last: Option<(String, Option<Clock>)>,
}

impl<'a> Clocks<'a> {
    /// A parser of times in dates of the given formats; epochs are converted to local time in `zone`.
    pub(crate) fn new(formats: &'a [String], zone: &str) -> Result<Self, String> {
        Ok(Self {
            formats,
            zone: zone_of(zone)?.unwrap_or(Tz::UTC),
            has_epochs: formats.iter().any(|format| EPOCHS.contains(&format.as_str())),
            last: None,
        })
    }

    /// The time in a date (`2019-06-28 15:45:00`, `6/28/2019 3:45 PM`, an epoch); `None` if it has none.
    pub(crate) fn of_date(&mut self, text: &str) -> Option<Clock> {
        self.remembered(text, |this| {
            let epoch = || this.epoch(text.parse().ok()?);
            let parsed = || {
                let timed = this
                    .formats
                    .iter()
                    .filter(|format| format.contains("%H") || format.contains("%I"));
                let mut read = timed.filter_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
                read.next().map(|time| local(time.time()))
            };
            if this.has_epochs
                && let Some(clock) = epoch()
            {
                return Some(clock);
            }
            this.with_offset(text).or_else(|| clock(text)).or_else(parsed)
        })
    }

    /// The time in a column of times: a time of day, a date with a time, hours after midnight (`15.75`) or an
    /// epoch. `scale` converts a number to hours.
    pub(crate) fn of_time(
        &mut self,
        text: &str,
        scale: impl Fn(f64) -> f64,
    ) -> Result<Option<Clock>, String> {
        if crate::value::is_missing(text) {
            return Ok(None);
        }
        let read = self.remembered(text, |this| match text.parse::<f64>() {
            Ok(number) if number >= LEAST_EPOCH => this.epoch(number),
            Ok(number) => {
                let local = (scale(number) * HOUR as f64).round() as i64;
                (0..DAY).contains(&local).then_some(Clock { local, instant: None })
            }
            Err(_) => this.with_offset(text).or_else(|| clock(text)),
        });
        read.map(Some).ok_or_else(|| {
            format!(
                "`{}` is not a time of day such as 15:45:00, hours after midnight (15.75) or an epoch",
                shown(text)
            )
        })
    }

    fn remembered(&mut self, text: &str, read: impl FnOnce(&Self) -> Option<Clock>) -> Option<Clock> {
        if let Some((last, clock)) = &self.last
            && last == text
        {
            return *clock;
        }
        let clock = read(self);
        let (last, last_clock) = self.last.get_or_insert_default();
        last.clear();
        last.push_str(text);
        *last_clock = clock;
        clock
    }

    /// The time of an epoch, whose unit is inferred from its magnitude.
    fn epoch(&self, number: f64) -> Option<Clock> {
        let unit = match number {
            LEAST_EPOCH..1e11 => 1e6,
            1e11..1e14 => 1e3,
            1e14..1e17 => 1.0,
            1e17..1e20 => 1e-3,
            _ => return None,
        };
        // Nanoseconds beyond a float's 53 bits are off by less than a quarter of a microsecond.
        let instant = (number * unit).round() as i64;
        self.at(DateTime::from_timestamp_micros(instant)?)
    }

    /// The time in a text with a date and an offset from UTC.
    fn with_offset(&self, text: &str) -> Option<Clock> {
        let bytes = text.as_bytes();
        let ends = bytes.last().is_some_and(|b| matches!(b, b'Z' | b'z'))
            || bytes.iter().skip(16).any(|b| matches!(b, b'+' | b'-'));
        if !ends {
            return None;
        }
        let instant = DateTime::parse_from_rfc3339(text)
            .or_else(|_| DateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f%z"))
            .or_else(|_| DateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f%z"))
            .or_else(|_| DateTime::parse_from_str(text, "%Y-%m-%d %H:%M%z"))
            .ok()?;
        if self.zone == Tz::UTC {
            // Date and time of day are taken as written in the text.
            let local = local(instant.time()).local;
            return Some(Clock {
                local,
                instant: Some(instant.timestamp_micros()),
            });
        }
        self.at(instant.with_timezone(&Utc))
    }

    fn at(&self, instant: DateTime<Utc>) -> Option<Clock> {
        Some(Clock {
            instant: Some(instant.timestamp_micros()),
            ..local(instant.with_timezone(&self.zone).time())
        })
    }
}

fn local(time: NaiveTime) -> Clock {
    let seconds = i64::from(time.num_seconds_from_midnight());
    Clock {
        local: seconds * SECOND + i64::from(time.nanosecond().min(999_999_999) / 1000),
        instant: None,
    }
}

/// The time of day in a text, with or without a date before it: `15:45`, `15:45:00.250`, `3:45 PM`; after a
/// date also `154500` and `1545`.
fn clock(text: &str) -> Option<Clock> {
    let Some((before, after)) = text.split_once(':') else {
        return digits_after_date(text);
    };
    let digits = before.bytes().rev().take(2).take_while(u8::is_ascii_digit).count();
    let hour: i64 = before.get(before.len() - digits..)?.parse().ok()?;
    let minute: i64 = after.get(..2)?.parse().ok()?;
    let rest = after.get(2..).unwrap_or_default();
    let (second, rest) = match rest.strip_prefix(':') {
        Some(rest) => (rest.get(..2)?.parse::<i64>().ok()?, rest.get(2..).unwrap_or_default()),
        None => (0, rest),
    };
    let mut fraction = 0;
    if let Some(digits) = rest.strip_prefix('.') {
        let digits = digits.bytes().take_while(u8::is_ascii_digit).take(6);
        fraction = digits
            .zip([100_000, 10_000, 1000, 100, 10, 1])
            .map(|(digit, unit)| i64::from(digit - b'0') * unit)
            .sum();
    }
    let half = text.get(text.len() - 2..).unwrap_or_default();
    let hour = match (half.eq_ignore_ascii_case("am"), half.eq_ignore_ascii_case("pm"), hour) {
        (true, _, 12) => 0,
        (_, true, 1..12) => hour + 12,
        _ => hour,
    };
    (hour < 24 && minute < 60 && second < 60).then_some(Clock {
        local: hour * HOUR + minute * MINUTE + second * SECOND + fraction,
        instant: None,
    })
}

/// The time of four or six digits that follow a date of digits: `20170103 093000`, `2017-01-03 0930`.
fn digits_after_date(text: &str) -> Option<Clock> {
    let (date, time) = text.rsplit_once([' ', 'T'])?;
    let is_time = matches!(time.len(), 4 | 6) && time.bytes().all(|b| b.is_ascii_digit());
    let is_date =
        date.ends_with(|c: char| c.is_ascii_digit()) && date.bytes().filter(u8::is_ascii_digit).count() >= 6;
    if !is_time || !is_date {
        return None;
    }
    let part = |at: usize| {
        time.get(at..at + 2)
            .map_or(Some(0), |digits| digits.parse::<u32>().ok())
    };
    NaiveTime::from_hms_opt(part(0)?, part(2)?, part(4)?).map(local)
}

/// Formats a time of day (microseconds after midnight), to the second or as finely as it needs.
pub(crate) fn time_text(local: i64) -> String {
    let (hour, minute) = (local / HOUR, local % HOUR / MINUTE);
    match (local % MINUTE / SECOND, local % SECOND) {
        (0, 0) => format!("{hour:02}:{minute:02}"),
        (second, 0) => format!("{hour:02}:{minute:02}:{second:02}"),
        (second, fraction) => format!("{hour:02}:{minute:02}:{second:02}.{fraction:06}"),
    }
}

/// Formats an instant (microseconds UTC).
pub(crate) fn instant_text(instant: i64) -> String {
    DateTime::from_timestamp_micros(instant)
        .map_or_else(String::new, |at| at.to_rfc3339_opts(SecondsFormat::AutoSi, true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::TimeZone;

    fn read(text: &str, zone: &str) -> Option<(String, Option<i64>)> {
        let formats = ["%Y-%m-%d", "epoch_ms", "%Y%m%d%H%M"].map(str::to_owned);
        let clock = Clocks::new(&formats, zone).unwrap().of_date(text)?;
        Some((time_text(clock.local), clock.instant))
    }

    #[test]
    fn times_of_dates() {
        let new_york = "America/New_York";
        let instant = Some(1_561_751_100_000_000);
        for (text, zone, time, at) in [
            ("2019-06-28 15:45", "", "15:45", None),
            ("2019-06-28T15:45:30.25", "", "15:45:30.250000", None),
            ("6/28/2019 3:45 PM", "", "15:45", None),
            ("6/28/2019 12:05 am", "", "00:05", None),
            ("20190628 154501", "", "15:45:01", None),
            ("28.06.2019 1545", "", "15:45", None),
            ("2019-06-28T154500", "", "15:45", None),
            ("2019-06-28 15:45:00-04:00", "", "15:45", instant),
            ("2019-06-28 15:45:00-0400", "", "15:45", instant),
            ("2019-06-28T19:45:00Z", new_york, "15:45", instant),
            ("1561751100000", new_york, "15:45", instant),
            ("1561751100", "", "19:45", instant),
        ] {
            assert_eq!(read(text, zone), Some((time.to_owned(), at)), "{text}");
        }
        for text in [
            "2019-06-28",
            "28:99",
            "2019-06-28 25:00",
            "20190628",
            "28 Jun 2019",
            "28 06 2019",
            "20190628 256000",
        ] {
            assert_eq!(read(text, ""), None, "{text}");
        }
    }

    #[test]
    fn times_of_their_own() {
        let mut clocks = Clocks::new(&[], "").unwrap();
        let mut read = |text: &str, per: f64| {
            let clock = clocks.of_time(text, |number| number / per)?;
            Ok::<_, String>(clock.map(|clock| time_text(clock.local)))
        };
        assert_eq!(read("15:45:01", 1.0), Ok(Some("15:45:01".to_owned())));
        assert_eq!(read("15.750000", 1.0), Ok(Some("15:45".to_owned())));
        assert_eq!(read("1561751100", 1.0), Ok(Some("19:45".to_owned())));
        assert_eq!(read("", 1.0), Ok(None));
        // Lean's times are in milliseconds.
        assert_eq!(
            Clocks::new(&[], "")
                .unwrap()
                .of_time("34260001", |ms| ms / 3_600_000.0)
                .unwrap()
                .unwrap()
                .local,
            34_260_001_000
        );
        assert!(
            read("154500", 1.0)
                .unwrap_err()
                .contains("`154500` is not a time of day")
        );
    }

    #[test]
    fn instants_on_days_that_change_the_clock() {
        let zone = Tz::America__New_York;
        let of =
            |date: &str, hour: i64| TimeZone::from(zone).at(date.parse().unwrap(), hour * HOUR + 30 * MINUTE);
        assert_eq!(of("2024-03-10", 2), None);
        assert_eq!(of("2024-03-10", 3).unwrap() - of("2024-03-10", 1).unwrap(), HOUR);
        // The first of the two hours that begin at one o'clock.
        assert_eq!(of("2024-11-03", 1).unwrap() - of("2024-11-03", 0).unwrap(), HOUR);
        assert_eq!(of("2024-11-03", 2).unwrap() - of("2024-11-03", 1).unwrap(), 2 * HOUR);
        let (day, _) = TimeZone::from(zone).local(of("2024-11-03", 23).unwrap());
        assert_eq!(day.to_string(), "2024-11-03");
    }
}
