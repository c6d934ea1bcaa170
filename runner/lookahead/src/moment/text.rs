//! Dates and times in text: in cells, in the names of files, in programs.

use super::{DAY, SECOND, Stamp, number_dates, settle};
use datasets::Date;

/// The dates of text cells, all in one format; `None` if they have no common format.
pub(crate) fn text_dates(cells: &[&str], numbers: bool) -> Option<Vec<Stamp>> {
    let all = |parse: &dyn Fn(&str) -> Option<Stamp>| {
        cells.iter().map(|cell| parse(cell.trim())).collect::<Option<Vec<_>>>()
    };
    if let Some(stamps) = all(&iso) {
        return Some(settle(stamps));
    }
    if cells
        .iter()
        .all(|cell| cell.trim().bytes().all(|byte| byte.is_ascii_digit()) && !cell.trim().is_empty())
    {
        let is_compact = cells.iter().all(|cell| cell.trim().len() == 8);
        let values = cells.iter().map(|cell| cell.trim().parse::<i64>().unwrap_or(-1));
        return if numbers || is_compact {
            number_dates(values).filter(|_| !cells.is_empty())
        } else {
            None
        };
    }
    if let Some(stamps) = all(&with_month_name) {
        return Some(stamps);
    }
    let [month_first, day_first] = [false, true].map(|day_first| all(&|cell| slashed(cell, day_first)));
    match (month_first, day_first) {
        // If two readings are possible, the one in which the rows are sorted is taken.
        (Some(a), Some(b)) => Some(if !a.is_sorted() && b.is_sorted() { b } else { a }),
        (one, other) => one.or(other),
    }
}

/// Parses `2024-01-31`, also with `/` or `.`, alone or with a time, and `2024-01`.
pub(super) fn iso(text: &str) -> Option<Stamp> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| {
        let part = text.get(from..to)?;
        part.bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| part.parse::<u32>().ok())?
    };
    let separator = *bytes.get(4)?;
    if !b"-/.".contains(&separator) {
        return None;
    }
    let (year, month) = (number(0, 4)?, number(5, 7)?);
    let year = i32::try_from(year).ok()?;
    if bytes.len() == 7 {
        let first = Date::from_ymd(year, month, 1)?;
        let (y, m) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
        let end = Stamp::day(Date::from_ymd(y, m, 1)?).start - 1;
        return Some(Stamp {
            start: Stamp::day(first).start,
            end,
        });
    }
    if *bytes.get(7)? != separator {
        return None;
    }
    let day = Stamp::day(Date::from_ymd(year, month, number(8, 10)?)?);
    let rest = &text[10..];
    if rest.is_empty() {
        return Some(day);
    }
    let rest = rest.strip_prefix(['T', ' ', 't'])?.trim();
    let zone = rest.find(['Z', 'z', '+']).or_else(|| rest.rfind('-'));
    let (time, zone) = rest.split_at(zone.unwrap_or(rest.len()));
    // Times are kept local, so that a day ends where the data's own day does.
    let known_zone =
        matches!(zone, "" | "Z" | "z") || zone[1..].bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
    known_zone.then_some(())?;
    Some(Stamp::instant(day.start + time_of_day(time.trim())?))
}

/// Parses `09:30`, `09:30:00` or `09:30:00.5` to microseconds since midnight.
pub(super) fn time_of_day(text: &str) -> Option<i64> {
    let mut parts = text.split(':');
    let (hour, minute) = (parts.next()?.parse::<i64>().ok()?, parts.next()?.parse::<i64>().ok()?);
    let seconds: f64 = parts.next().map_or(Some(0.0), |part| part.parse().ok())?;
    let valid = (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0.0..61.0).contains(&seconds)
        && parts.next().is_none();
    valid.then(|| (hour * 3600 + minute * 60) * SECOND + (seconds * 1e6) as i64)
}

/// Parses `1/31/2024` or `31.1.2024`.
fn slashed(text: &str, day_first: bool) -> Option<Stamp> {
    let (date, time) = match text.split_once(' ') {
        Some((date, time)) => (date, Some(time_of_day(time.trim())?)),
        None => (text, None),
    };
    let parts: Vec<u32> = date
        .split(['/', '-', '.'])
        .map(|part| part.parse().ok())
        .collect::<Option<_>>()?;
    let &[a, b, year] = parts.as_slice() else { return None };
    let year = i32::try_from(year).ok().filter(|year| (1800..2200).contains(year))?;
    let (month, day) = if day_first { (b, a) } else { (a, b) };
    let day = Stamp::day(Date::from_ymd(year, month, day)?);
    Some(time.map_or(day, |time| Stamp::instant(day.start + time)))
}

/// Parses `31-Jan-2024`, `Jan 31, 2024` or `31 January 2024`.
fn with_month_name(text: &str) -> Option<Stamp> {
    const MONTHS: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let parts: Vec<&str> = text
        .split([' ', '-', ',', '/'])
        .filter(|part| !part.is_empty())
        .collect();
    let &[a, b, year] = parts.as_slice() else { return None };
    let month = |part: &str| {
        let name = part.get(..3)?.to_ascii_lowercase();
        MONTHS.iter().position(|month| *month == name).map(|i| i as u32 + 1)
    };
    let (month, day) = month(b).map(|month| (month, a)).or_else(|| Some((month(a)?, b)))?;
    Date::from_ymd(year.parse().ok()?, month, day.parse().ok()?).map(Stamp::day)
}

/// The date in a file's name: `2024-01-31` or `20240131`.
pub(crate) fn name_date(path: &str) -> Option<Stamp> {
    let found = |width: usize, parse: &dyn Fn(&str) -> Option<Stamp>| {
        (0..path.len().saturating_sub(width - 1)).rev().find_map(|i| {
            let bytes = path.as_bytes();
            let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
            let alone = !digit(i.checked_sub(1)) && !digit(Some(i + width));
            alone.then(|| path.get(i..i + width).and_then(parse)).flatten()
        })
    };
    found(10, &iso).or_else(|| {
        found(8, &|part| {
            let digits = part.bytes().all(|byte| byte.is_ascii_digit());
            digits
                .then(|| number_dates(std::iter::once(part.parse().ok()?)))
                .flatten()
                .map(|stamps| stamps[0])
        })
    })
}

/// The dates that a text contains, such as `2024-01-31`.
pub(crate) fn named_in(text: &str) -> Vec<Date> {
    let at = |i: usize| {
        text.get(i..i + 10)
            .and_then(iso)
            .filter(|stamp| stamp.end - stamp.start < DAY)
    };
    (0..text.len().saturating_sub(9))
        .filter_map(at)
        .map(Stamp::date)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::date_of;

    fn shown(cells: &[&str]) -> Vec<String> {
        text_dates(cells, true)
            .unwrap_or_default()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn dates_in_all_forms() {
        for cell in [
            "2024-01-31",
            "2024/01/31",
            "2024-01-31T00:00:00Z",
            "2024-01-31 00:00:00+00:00",
            "20240131",
            "1/31/2024",
            "31.01.2024",
        ] {
            assert_eq!(shown(&[cell]), ["2024-01-31"], "{cell}");
        }
        for cell in [
            "31-Jan-2024",
            "Jan 31, 2024",
            "31 January 2024",
            "1706659200",
            "1706659200000",
        ] {
            assert_eq!(shown(&[cell]), ["2024-01-31"], "{cell}");
        }
        assert_eq!(
            shown(&["2024-01-31 09:30", "2024-01-31 16:00:00.5"]),
            ["2024-01-31 09:30:00", "2024-01-31 16:00:00.500000"]
        );
        // Days and months change places where the order of the rows asks for it.
        assert_eq!(shown(&["1/2/2024", "2/2/2024"]), ["2024-01-02", "2024-02-02"]);
        assert_eq!(
            shown(&["11/1/2024", "12/1/2024", "1/2/2024"]),
            ["2024-01-11", "2024-01-12", "2024-02-01"]
        );
        let month = text_dates(&["2024-02"], false).unwrap()[0];
        assert_eq!(date_of(month.end).to_string(), "2024-02-29");
        for cells in [&["2024-01-31", "soon"][..], &["2024-13-01"], &["12"], &["1.5"], &[""]] {
            assert_eq!(text_dates(cells, true), None, "{cells:?}");
        }
        // A number is a date only where the name says so, but for eight digits.
        assert_eq!(text_dates(&["1706659200"], false), None);
    }

    #[test]
    fn dates_in_names() {
        assert_eq!(name_date("bars/2024-01-31.csv").unwrap().to_string(), "2024-01-31");
        assert_eq!(name_date("bars_20240131.parquet").unwrap().to_string(), "2024-01-31");
        assert_eq!(name_date("bars_120240131.parquet"), None);
        assert_eq!(named_in("from 2024-01-31 on"), [Date::from_ymd(2024, 1, 31).unwrap()]);
    }
}
