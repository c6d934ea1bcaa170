//! Numbers and dates as vendors write them.

use chrono::NaiveDate;
use datasets::Date;
use datasets::layout::{MISSING, Text};
use std::ops::RangeInclusive;

/// The years that a date may be in.
const YEARS: RangeInclusive<i32> = 1800..=2199;

/// The place of a stored date that is in none of these years. Rows that have it are dropped and counted under [`DATE_OUT_OF_RANGE`].
///
/// [`DATE_OUT_OF_RANGE`]: datasets::quality::DATE_OUT_OF_RANGE
pub const OUT_OF_RANGE: Date = Date(i32::MIN);

/// The date of a day counted from 1970-01-01.
pub fn in_range(day: i64) -> Date {
    // The first day of 1800 and the last of 2199.
    const DAYS: RangeInclusive<i64> = -62_091..=84_005;
    if DAYS.contains(&day) {
        Date(day as i32)
    } else {
        OUT_OF_RANGE
    }
}

/// A number, NaN where it is missing.
pub fn number(text: &str) -> Result<f64, String> {
    let text = text.trim();
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ if is_missing(text) => Ok(f64::NAN),
        _ => Err(format!("`{}` is not a number", shown(text))),
    }
}

/// Returns whether the text stands for a missing value.
pub fn is_missing(text: &str) -> bool {
    MISSING.iter().any(|missing| missing.eq_ignore_ascii_case(text))
}

/// A text short enough for a message.
pub fn shown(text: &str) -> String {
    if text.chars().count() <= 40 {
        return text.to_owned();
    }
    let mut shown: String = text.chars().take(40).collect();
    shown.push('…');
    shown
}

/// A list short enough for a message.
pub fn shown_list(names: &[String]) -> String {
    let mut list: Vec<_> = names.iter().take(30).map(|name| shown(name.trim())).collect();
    if names.len() > 30 {
        list.push(format!("and {} more", names.len() - 30));
    }
    list.join(", ")
}

/// Reads dates in any of some formats, quickly where one follows another that is the same.
pub struct Dates<'a> {
    formats: &'a [Text],
    last: Option<(String, Date)>,
}

impl<'a> Dates<'a> {
    /// A reader of these `strftime` formats.
    pub fn new(formats: &'a [Text]) -> Self {
        Self { formats, last: None }
    }

    /// A date; in ISO format with a time of day after it too.
    pub fn parse(&mut self, text: &str) -> Result<Date, String> {
        let text = text.trim();
        if let Some((last, date)) = &self.last
            && last == text
        {
            return Ok(*date);
        }
        let date = self
            .formats
            .iter()
            .find_map(|format| parse(text, format))
            .filter(|date| YEARS.contains(&date.ymd().0))
            .ok_or_else(|| {
                if is_missing(text) {
                    "the date is missing".to_owned()
                } else {
                    format!("`{}` is not a date as {}", shown(text), self.formats.join(" or "))
                }
            })?;
        let (last, of_last) = self.last.get_or_insert_default();
        last.clear();
        last.push_str(text);
        *of_last = date;
        Ok(date)
    }
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
        ("%m/%d/%Y", 8..=10) => {
            let mut parts = bytes.split(|b| *b == b'/');
            let (m, d, y) = (parts.next()?, parts.next()?, parts.next()?);
            (parts.next().is_none() && y.len() == 4).then(|| ymd(y, m, d))?
        }
        ("%Y%m%d", 8) => ymd(&bytes[..4], &bytes[4..6], &bytes[6..]),
        ("%Y-%m-%d" | "%m/%d/%Y" | "%Y%m%d", _) => None,
        _ => NaiveDate::parse_from_str(text, format).ok().map(Date::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

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
            Cow::Borrowed("%Y-%m-%d"),
            Cow::Borrowed("%m/%d/%Y"),
            Cow::Borrowed("%Y%m%d"),
            Cow::Borrowed("%d-%b-%y"),
        ];
        let mut dates = Dates::new(&formats);
        for text in [
            "2019-06-28",
            "2019-06-28 00:00:00-04:00",
            "2019-06-28T16:00",
            "06/28/2019",
            "6/28/2019",
            "20190628",
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
}
