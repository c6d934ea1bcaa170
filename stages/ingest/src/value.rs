//! Parsing of numbers and dates in vendors' notations.

use chrono::{DateTime, NaiveDate};
use chrono_tz::Tz;
use datasets::Date;
use datasets::layout::{EPOCHS, EXCEL, MISSING};
use std::ops::RangeInclusive;

/// The supported years of dates.
const YEARS: RangeInclusive<i32> = 1800..=2199;

/// Stands for a stored date outside the supported years. Rows with this date are dropped and counted under
/// [`DATE_OUT_OF_RANGE`].
///
/// [`DATE_OUT_OF_RANGE`]: datasets::quality::DATE_OUT_OF_RANGE
pub const OUT_OF_RANGE: Date = Date(i32::MIN);

/// The date `day` days after 1970-01-01, or [`OUT_OF_RANGE`].
pub fn in_range(day: i64) -> Date {
    // The first day of 1800 and the last of 2199.
    const DAYS: RangeInclusive<i64> = -62_091..=84_005;
    if DAYS.contains(&day) {
        Date(day as i32)
    } else {
        OUT_OF_RANGE
    }
}

/// Parses a plain number; NaN for a missing value.
pub fn number(text: &str) -> Result<f64, String> {
    let text = text.trim();
    crate::number::plain(text).ok_or_else(|| format!("`{}` is not a number", shown(text)))
}

/// Returns whether the text stands for a missing value.
pub fn is_missing(text: &str) -> bool {
    MISSING.iter().any(|missing| missing.eq_ignore_ascii_case(text))
}

/// Shortens a text for a message.
pub fn shown(text: &str) -> String {
    if text.chars().count() <= 40 {
        return text.to_owned();
    }
    let mut shown: String = text.chars().take(40).collect();
    shown.push('…');
    shown
}

/// Shortens a list of names for a message.
pub fn shown_list(names: &[String]) -> String {
    let mut list: Vec<_> = names.iter().take(30).map(|name| shown(name.trim())).collect();
    if names.len() > 30 {
        list.push(format!("and {} more", names.len() - 30));
    }
    list.join(", ")
}

/// The date format given by a setting, or `%Y-%m-%d` if the setting is empty.
pub fn formats_or_iso(given: &str) -> [String; 1] {
    [if given.is_empty() { "%Y-%m-%d" } else { given }.to_owned()]
}

/// Parses dates in any of several formats, with a shortcut for repeated texts.
pub struct Dates<'a> {
    formats: &'a [String],
    zone: Option<Tz>,
    last: Option<(String, Date)>,
}

impl<'a> Dates<'a> {
    /// A parser of the given `strftime` formats and [`EPOCHS`]. `zone` is the time zone that decides an
    /// instant's date: an IANA name, or empty for UTC.
    pub fn new(formats: &'a [String], zone: &str) -> Result<Self, String> {
        Ok(Self {
            formats,
            zone: zone_of(zone)?,
            last: None,
        })
    }

    /// Parses a date; a time of day after it is ignored.
    pub fn parse(&mut self, text: &str) -> Result<Date, String> {
        let text = text.trim();
        if let Some((last, date)) = &self.last
            && last == text
        {
            return Ok(*date);
        }
        let date = self
            .instant(text)
            .or_else(|| {
                self.formats.iter().find_map(|format| match format.as_str() {
                    EXCEL => excel_day(text),
                    epoch if EPOCHS.contains(&epoch) => epoch_day(text, epoch, self.zone),
                    format => parse(text, format),
                })
            })
            .filter(|date| YEARS.contains(&date.ymd().0))
            .ok_or_else(|| {
                if is_missing(text) {
                    "the date is missing".to_owned()
                } else {
                    format!("`{}` is not a date as {}", shown(text), self.formats.join(" or "))
                }
            })?;
        let (last, last_date) = self.last.get_or_insert_default();
        last.clear();
        last.push_str(text);
        *last_date = date;
        Ok(date)
    }

    /// The date, in the time zone, of an instant with an offset (`2024-01-19T20:59:59Z`); if the time zone is
    /// UTC, the date as written.
    fn instant(&self, text: &str) -> Option<Date> {
        let zone = self.zone?;
        let instant = DateTime::parse_from_rfc3339(text).ok()?;
        Some(instant.with_timezone(&zone).date_naive().into())
    }
}

/// The time zone of an IANA name; `None` for UTC.
pub fn zone_of(name: &str) -> Result<Option<Tz>, String> {
    match name {
        "" | "UTC" | "Etc/UTC" => Ok(None),
        name => name
            .parse()
            .map(Some)
            .map_err(|_| format!("there is no time zone `{name}`; its name is one such as America/New_York")),
    }
}

/// The date of an epoch (time since 1970-01-01 UTC) in a time zone.
fn epoch_day(text: &str, unit: &str, zone: Option<Tz>) -> Option<Date> {
    let time: i64 = match text.parse() {
        Ok(time) => time,
        // An integer written as a float, as JSON and spreadsheets do.
        Err(_) => text.parse::<f64>().ok().filter(|time| time.abs() < 9e18)? as i64,
    };
    let instant = match unit {
        "epoch_s" => DateTime::from_timestamp(time, 0)?,
        "epoch_ms" => DateTime::from_timestamp_millis(time)?,
        "epoch_us" => DateTime::from_timestamp_micros(time)?,
        _ => DateTime::from_timestamp_nanos(time),
    };
    // Dates in the first years after 1970 are small numbers in a wrong unit, not dates of quotes.
    (instant.timestamp() >= 86_400 * 365).then(|| match zone {
        Some(zone) => instant.with_timezone(&zone).date_naive().into(),
        None => instant.date_naive().into(),
    })
}

/// The date that Excel counts as this number of days, with a time of day as a fraction: 44970 is 2023-02-13.
/// Days before 1954 and after 2099 are taken for other numbers.
fn excel_day(text: &str) -> Option<Date> {
    let days: f64 = text.parse().ok()?;
    // 1970-01-01 is day 25569.
    (20_000.0..73_051.0)
        .contains(&days)
        .then(|| Date(days.floor() as i32 - 25_569))
}

/// Removes the time of day after a date.
fn without_time(text: &str) -> &str {
    let bytes = text.as_bytes();
    let end = (1..bytes.len()).find(|&i| {
        let between_digits =
            bytes[i - 1].is_ascii_digit() && bytes.get(i + 1).is_some_and(u8::is_ascii_digit);
        matches!(bytes[i], b' ' | b'T') && between_digits
    });
    end.map_or(text, |end| &text[..end])
}

fn parse(text: &str, format: &str) -> Option<Date> {
    let bytes = text.as_bytes();
    let number = |digits: &[u8]| {
        (!digits.is_empty() && digits.len() <= 4 && digits.iter().all(u8::is_ascii_digit))
            .then(|| digits.iter().fold(0_u32, |n, d| n * 10 + u32::from(d - b'0')))
    };
    let ymd = |y: &[u8], m: &[u8], d: &[u8]| Date::from_ymd(number(y)? as i32, number(m)?, number(d)?);
    match (format, bytes.len()) {
        ("%Y-%m-%d", 10..) => {
            let time_follows = bytes.get(10).is_none_or(|b| matches!(b, b' ' | b'T'));
            let dashes = bytes[4] == b'-' && bytes[7] == b'-';
            (dashes && time_follows).then(|| ymd(&bytes[..4], &bytes[5..7], &bytes[8..10]))?
        }
        ("%m/%d/%Y", 8..) => {
            let mut parts = without_time(text).as_bytes().split(|b| *b == b'/');
            let (m, d, y) = (parts.next()?, parts.next()?, parts.next()?);
            (parts.next().is_none() && y.len() == 4).then(|| ymd(y, m, d))?
        }
        ("%Y%m%d", 8..) => {
            let bytes = without_time(text).as_bytes();
            (bytes.len() == 8).then(|| ymd(&bytes[..4], &bytes[4..6], &bytes[6..]))?
        }
        ("%Y-%m-%d" | "%m/%d/%Y" | "%Y%m%d", _) => None,
        _ => NaiveDate::parse_from_str(text, format)
            .or_else(|_| NaiveDate::parse_from_str(without_time(text), format))
            .ok()
            .map(Date::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(number(" 12.5 "), Ok(12.5));
        assert_eq!(number("-1e3"), Ok(-1000.0));
        for missing in ["", "null", "NaN", ".", "N/A", " - "] {
            assert!(number(missing).unwrap().is_nan(), "{missing}");
        }
        for wrong in ["inf", "1,5", "12a", "--1"] {
            assert!(number(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn stored_dates_are_in_the_same_years() {
        let day = |date: &str| date.parse::<Date>().unwrap();
        for date in [day("1800-01-01"), day("1970-01-01"), day("2199-12-31")] {
            assert_eq!(in_range(date.0.into()), date);
        }
        for wrong in [
            day("1799-12-31").0.into(),
            day("2200-01-01").0.into(),
            i64::MIN,
            i64::MAX,
            1 << 32,
        ] {
            assert_eq!(in_range(wrong), OUT_OF_RANGE, "{wrong}");
        }
    }

    #[test]
    fn dates() {
        let formats = [
            "%Y-%m-%d".to_owned(),
            "%m/%d/%Y".to_owned(),
            "%Y%m%d".to_owned(),
            "%d-%b-%y".to_owned(),
        ];
        let mut dates = Dates::new(&formats, "").unwrap();
        for text in [
            "2019-06-28",
            "2019-06-28 00:00:00-04:00",
            "2019-06-28T16:00",
            "06/28/2019",
            "6/28/2019",
            "20190628",
            "20190628 00:00",
            "06/28/2019 16:00:00",
            "28-Jun-19",
        ] {
            assert_eq!(dates.parse(text).unwrap().to_string(), "2019-06-28", "{text}");
        }
        for wrong in [
            "",
            "2019-02-30",
            "2019-13-01",
            "19-06-28",
            "28/06/2019",
            "2019-06-288",
            "é019-06-28",
            "0019-06-28",
            "9999-01-01",
        ] {
            assert!(dates.parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn instants_have_their_date_in_a_zone() {
        let read = |format: &str, zone: &str, text: &str| {
            let formats = [format.to_owned()];
            Dates::new(&formats, zone)
                .unwrap()
                .parse(text)
                .map(|date| date.to_string())
        };
        let new_york = "America/New_York";
        // Midnight in New York, and an hour before it.
        assert_eq!(read("epoch_ns", new_york, "1679889600000000000").unwrap(), "2023-03-27");
        assert_eq!(read("epoch_ms", new_york, "1679886000000").unwrap(), "2023-03-26");
        assert_eq!(read("epoch_s", "", "1679886000").unwrap(), "2023-03-27");
        assert_eq!(read("epoch_us", "", "1679886000000000.0").unwrap(), "2023-03-27");
        assert_eq!(
            read("%Y-%m-%d", new_york, "2024-01-20T02:00:00Z").unwrap(),
            "2024-01-19"
        );
        assert_eq!(read("%Y-%m-%d", "", "2024-01-20T02:00:00Z").unwrap(), "2024-01-20");
        // Seconds parsed as nanoseconds are refused, rather than read as 1970.
        assert!(read("epoch_ns", "", "1679886000").is_err());
        assert!(Dates::new(&[], "Mars/Olympus").is_err());
    }
}
