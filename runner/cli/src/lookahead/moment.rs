//! The time at which a row of a table is known, parsed from any common form of dates and times.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Date32Type, Date64Type, Int32Type, Int64Type, TimeUnit};
use datasets::Date;
use std::fmt;

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// The span that the date or time of a row names, in microseconds since 1970-01-01: a day, or an instant. The row is known at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    pub start: i64,
    pub end: i64,
}

impl Stamp {
    pub fn day(date: Date) -> Self {
        let start = i64::from(date.0) * DAY;
        Self {
            start,
            end: start + DAY - 1,
        }
    }

    fn instant(at: i64) -> Self {
        Self { start: at, end: at }
    }

    /// The day it begins on.
    pub fn date(self) -> Date {
        date_of(self.start)
    }

    fn is_midnight(self) -> bool {
        self.start == self.end && self.start.rem_euclid(DAY) == 0
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.date())?;
        let within = self.start.rem_euclid(DAY);
        if self.start != self.end || within == 0 {
            return Ok(());
        }
        let seconds = within / SECOND;
        write!(f, " {:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)?;
        match within % SECOND {
            0 => Ok(()),
            micros => write!(f, ".{micros:06}"),
        }
    }
}

/// The date of a moment.
pub fn date_of(micros: i64) -> Date {
    Date(i32::try_from(micros.div_euclid(DAY)).unwrap_or(i32::MAX))
}

/// Timestamps at midnight alone are dates.
fn settle(mut stamps: Vec<Stamp>) -> Vec<Stamp> {
    if stamps.iter().all(|stamp| stamp.is_midnight()) {
        for stamp in &mut stamps {
            *stamp = Stamp::day(stamp.date());
        }
    }
    stamps
}

/// True if a column of this name holds the time at which a row was known.
pub fn is_date_name(name: &str) -> bool {
    const NAMES: [&str; 22] = [
        "date",
        "day",
        "datetime",
        "time",
        "timestamp",
        "ts",
        "epoch",
        "trade_date",
        "tradedate",
        "trading_day",
        "quote_date",
        "asof",
        "as_of",
        "as_of_date",
        "data_date",
        "datadate",
        "caldt",
        "dt",
        "dates",
        "open_time",
        "index",
        "obs_date",
    ];
    let name = name
        .trim_matches(|c: char| !c.is_ascii_alphanumeric())
        .to_ascii_lowercase();
    NAMES.contains(&name.replace([' ', '-'], "_").as_str())
}

/// True if a column of this name holds dates that do not tell when its row was known.
fn is_other_date_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["expir", "matur", "settle", "payment", "birth", "listed", "ipo"]
        .iter()
        .any(|part| name.contains(part))
}

/// The column with the dates of a table's rows, and the dates; `None` if no column has a date in each row.
pub fn of_batch(batch: &RecordBatch) -> Option<(usize, Vec<Stamp>)> {
    let schema = batch.schema();
    let fields = schema.fields();
    let typed = |i: usize| {
        matches!(
            fields[i].data_type(),
            DataType::Date32 | DataType::Date64 | DataType::Timestamp(..)
        )
    };
    let named = (0..fields.len()).filter(|&i| is_date_name(fields[i].name()));
    let of_type = (0..fields.len()).filter(|&i| typed(i) && !is_other_date_name(fields[i].name()));
    // The index that pandas writes: the first column of text, without a name.
    let first = (0..fields.len().min(1)).filter(|_| !is_other_date_name(fields[0].name()));
    let text = (0..fields.len())
        .filter(|&i| is_text(fields[i].data_type()) && fields[i].name().to_ascii_lowercase().contains("date"));
    let text = text.filter(|&i| !is_other_date_name(fields[i].name()));
    for i in named.chain(of_type).chain(first).chain(text) {
        let epoch = is_date_name(fields[i].name());
        if let Some(mut stamps) = of_column(batch.column(i).as_ref(), epoch) {
            add_times(batch, i, &mut stamps);
            return Some((i, stamps));
        }
    }
    None
}

/// The column that has dates in some rows, though not in all; a date of expiry is none.
pub fn with_some_dates(batch: &RecordBatch) -> Option<String> {
    let schema = batch.schema();
    let fields = schema
        .fields()
        .iter()
        .zip(batch.columns())
        .filter(|(field, _)| !is_other_date_name(field.name()));
    let has_some = |column: &ArrayRef| {
        let cells = texts(column.as_ref()).unwrap_or_default();
        let dates = cells.iter().flatten().filter(|cell| iso(cell.trim()).is_some()).count();
        dates > 1
    };
    let mut columns = fields
        .filter(|(_, column)| has_some(column))
        .map(|(field, _)| field.name().clone());
    columns.next()
}

fn is_text(ty: &DataType) -> bool {
    matches!(ty, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// A time of day in a column `time` beside a column of dates.
fn add_times(batch: &RecordBatch, date: usize, stamps: &mut [Stamp]) {
    if stamps.iter().any(|stamp| stamp.start == stamp.end) {
        return;
    }
    let schema = batch.schema();
    let found = schema.fields().iter().enumerate().position(|(i, field)| {
        i != date && ["time", "minute"].contains(&field.name().trim().to_ascii_lowercase().as_str())
    });
    let Some(times) = found.and_then(|i| texts(batch.column(i).as_ref())) else {
        return;
    };
    let times: Option<Vec<i64>> = times.iter().map(|text| time_of_day(text.as_deref()?.trim())).collect();
    for (stamp, time) in stamps.iter_mut().zip(times.unwrap_or_default()) {
        *stamp = Stamp::instant(stamp.start + time);
    }
}

/// The cells of a text column.
pub fn texts(column: &dyn Array) -> Option<Vec<Option<String>>> {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    Some(match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().iter().map(owned).collect(),
        DataType::LargeUtf8 => column.as_string::<i64>().iter().map(owned).collect(),
        DataType::Utf8View => column.as_string_view().iter().map(owned).collect(),
        _ => return None,
    })
}

/// The dates of a column; `None` if one is missing or is not a date. Numbers are dates in a column of such a name alone.
pub fn of_column(column: &dyn Array, numbers: bool) -> Option<Vec<Stamp>> {
    if column.null_count() > 0 {
        return None;
    }
    match column.data_type() {
        DataType::Date32 => Some(
            column
                .as_primitive::<Date32Type>()
                .values()
                .iter()
                .map(|&day| Stamp::day(Date(day)))
                .collect(),
        ),
        DataType::Date64 => {
            let values = column.as_primitive::<Date64Type>().values();
            Some(settle(
                values
                    .iter()
                    .map(|&ms| Stamp::instant(ms.saturating_mul(1000)))
                    .collect(),
            ))
        }
        DataType::Timestamp(unit, _) => {
            let data = column.to_data();
            let values: &[i64] = data.buffer(0);
            let micros = |value: &i64| match unit {
                TimeUnit::Second => value.saturating_mul(SECOND),
                TimeUnit::Millisecond => value.saturating_mul(1000),
                TimeUnit::Microsecond => *value,
                TimeUnit::Nanosecond => value.div_euclid(1000),
            };
            // The buffer of a slice begins at its offset.
            Some(settle(
                values
                    .iter()
                    .take(column.len())
                    .map(|value| Stamp::instant(micros(value)))
                    .collect(),
            ))
        }
        DataType::Int64 if numbers => of_numbers(column.as_primitive::<Int64Type>().values().iter().copied()),
        DataType::Int32 if numbers => of_numbers(
            column
                .as_primitive::<Int32Type>()
                .values()
                .iter()
                .map(|&value| i64::from(value)),
        ),
        ty if is_text(ty) => {
            let cells = texts(column)?;
            of_texts(
                &cells
                    .iter()
                    .map(|cell| cell.as_deref().unwrap_or_default())
                    .collect::<Vec<_>>(),
                numbers,
            )
        }
        _ => None,
    }
}

/// Dates such as 20240131, or seconds, milliseconds, microseconds or nanoseconds since 1970.
fn of_numbers(values: impl Iterator<Item = i64> + Clone) -> Option<Vec<Stamp>> {
    let compact = |value: i64| {
        let part = |by: i64| u32::try_from(value / by % 100).ok();
        let year = i32::try_from(value / 10_000)
            .ok()
            .filter(|year| (1800..2200).contains(year))?;
        Date::from_ymd(year, part(100)?, part(1)?).map(Stamp::day)
    };
    if let Some(stamps) = values.clone().map(compact).collect::<Option<Vec<_>>>() {
        return Some(stamps);
    }
    // From 1980 to 2100.
    let units = [
        (1, SECOND, 1),
        (1000, 1000, 1),
        (1_000_000, 1, 1),
        (1_000_000_000, 1, 1000),
    ];
    units.iter().find_map(|&(unit, times, by)| {
        let range = 315_532_800 * unit..4_102_444_800 * unit;
        let of = |value: i64| range.contains(&value).then(|| Stamp::instant(value * times / by));
        values.clone().map(of).collect::<Option<Vec<_>>>().map(settle)
    })
}

/// The dates of text cells, all in one form; `None` if there is no such form.
pub fn of_texts(cells: &[&str], numbers: bool) -> Option<Vec<Stamp>> {
    let all =
        |parse: &dyn Fn(&str) -> Option<Stamp>| cells.iter().map(|cell| parse(cell.trim())).collect::<Option<Vec<_>>>();
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
            of_numbers(values).filter(|_| !cells.is_empty())
        } else {
            None
        };
    }
    if let Some(stamps) = all(&with_month_name) {
        return Some(stamps);
    }
    let [month_first, day_first] = [false, true].map(|day_first| all(&|cell| slashed(cell, day_first)));
    match (month_first, day_first) {
        // Of two readings, the one in which the rows are in order.
        (Some(a), Some(b)) => Some(if !a.is_sorted() && b.is_sorted() { b } else { a }),
        (one, other) => one.or(other),
    }
}

/// `2024-01-31`, also with `/` or `.`, alone or with a time, and `2024-01`.
fn iso(text: &str) -> Option<Stamp> {
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
    // Local time, so that a day ends where the data's own day does.
    let known_zone =
        matches!(zone, "" | "Z" | "z") || zone[1..].bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
    known_zone.then_some(())?;
    Some(Stamp::instant(day.start + time_of_day(time.trim())?))
}

/// Microseconds since midnight of `09:30`, `09:30:00` or `09:30:00.5`.
fn time_of_day(text: &str) -> Option<i64> {
    let mut parts = text.split(':');
    let (hour, minute) = (parts.next()?.parse::<i64>().ok()?, parts.next()?.parse::<i64>().ok()?);
    let seconds: f64 = parts.next().map_or(Some(0.0), |part| part.parse().ok())?;
    let valid = (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0.0..61.0).contains(&seconds)
        && parts.next().is_none();
    valid.then(|| (hour * 3600 + minute * 60) * SECOND + (seconds * 1e6) as i64)
}

/// `1/31/2024` or `31.1.2024`.
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

/// `31-Jan-2024`, `Jan 31, 2024` or `31 January 2024`.
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
pub fn of_name(path: &str) -> Option<Stamp> {
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
                .then(|| of_numbers(std::iter::once(part.parse().ok()?)))
                .flatten()
                .map(|stamps| stamps[0])
        })
    })
}

/// The dates that a text names, as in `2024-01-31`.
pub fn named_in(text: &str) -> Vec<Date> {
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

    fn shown(cells: &[&str]) -> Vec<String> {
        of_texts(cells, true)
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
        let month = of_texts(&["2024-02"], false).unwrap()[0];
        assert_eq!(date_of(month.end).to_string(), "2024-02-29");
        for cells in [&["2024-01-31", "soon"][..], &["2024-13-01"], &["12"], &["1.5"], &[""]] {
            assert_eq!(of_texts(cells, true), None, "{cells:?}");
        }
        // A number is a date only where the name says so, but for eight digits.
        assert_eq!(of_texts(&["1706659200"], false), None);
    }

    #[test]
    fn dates_in_names() {
        assert_eq!(of_name("bars/2024-01-31.csv").unwrap().to_string(), "2024-01-31");
        assert_eq!(of_name("bars_20240131.parquet").unwrap().to_string(), "2024-01-31");
        assert_eq!(of_name("bars_120240131.parquet"), None);
        assert_eq!(named_in("from 2024-01-31 on"), [Date::from_ymd(2024, 1, 31).unwrap()]);
    }
}
