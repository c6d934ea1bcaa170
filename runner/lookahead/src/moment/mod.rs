//! The time at which a row of a table is known, parsed from any common format of dates and times.

mod names;
mod text;

pub(crate) use names::is_date_name;
pub(crate) use text::{name_date, named_in, text_dates};

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType, TimeUnit};
use datasets::Date;
use datasets::schema::SNAPSHOT;
use names::is_other_date_name;
use std::fmt;
use text::{iso, time_of_day};

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// The span that a row's date or time denotes, in microseconds since 1970-01-01: a day, or an instant. The
/// row is known at the end of the span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stamp {
    pub start: i64,
    pub end: i64,
}

impl Stamp {
    pub(crate) fn day(date: Date) -> Self {
        let start = i64::from(date.0) * DAY;
        Self {
            start,
            end: start + DAY - 1,
        }
    }

    pub(crate) fn instant(at: i64) -> Self {
        Self { start: at, end: at }
    }

    /// The day on which the span begins.
    pub(crate) fn date(self) -> Date {
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
pub(crate) fn date_of(micros: i64) -> Date {
    Date(i32::try_from(micros.div_euclid(DAY)).unwrap_or(i32::MAX))
}

/// Timestamps that are all at midnight are dates.
fn settle(mut stamps: Vec<Stamp>) -> Vec<Stamp> {
    if stamps.iter().all(|stamp| stamp.is_midnight()) {
        for stamp in &mut stamps {
            *stamp = Stamp::day(stamp.date());
        }
    }
    stamps
}

/// The date column of a table, and the date of each row; `None` if no column has a date in each row.
pub(crate) fn table_dates(batch: &RecordBatch) -> Option<(usize, Vec<Stamp>)> {
    let schema = batch.schema();
    let fields = schema.fields();
    let typed = |i: usize| {
        matches!(
            fields[i].data_type(),
            DataType::Date32 | DataType::Date64 | DataType::Timestamp(..)
        )
    };
    let named = (0..fields.len()).filter(|&i| is_date_name(fields[i].name()));
    let typed_columns = (0..fields.len()).filter(|&i| typed(i) && !is_other_date_name(fields[i].name()));
    // The index written by pandas: the first column of text, without a name.
    let first = (0..fields.len().min(1)).filter(|_| !is_other_date_name(fields[0].name()));
    let text = (0..fields.len()).filter(|&i| {
        is_text(fields[i].data_type()) && fields[i].name().to_ascii_lowercase().contains("date")
    });
    let text = text.filter(|&i| !is_other_date_name(fields[i].name()));
    for i in named.chain(typed_columns).chain(first).chain(text) {
        let epoch = is_date_name(fields[i].name());
        if let Some(mut stamps) = column_dates(batch.column(i).as_ref(), epoch) {
            add_times(batch, i, &mut stamps);
            if let Some(instants) = instants(batch) {
                stamps = instants;
            }
            return Some((i, stamps));
        }
    }
    None
}

/// The column that has dates in some rows, but not in all; expiry dates do not count.
pub(crate) fn with_some_dates(batch: &RecordBatch) -> Option<String> {
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

/// The instants of rows whose date column states only the day: the snapshots of a chain.
pub(crate) fn instants(batch: &RecordBatch) -> Option<Vec<Stamp>> {
    let column = batch.column_by_name(SNAPSHOT.name)?;
    column_dates(column.as_ref(), true).filter(|stamps| stamps.iter().all(|stamp| stamp.start == stamp.end))
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
    let times: Option<Vec<i64>> = times.iter().map(|text| time_of_day((*text)?.trim())).collect();
    for (stamp, time) in stamps.iter_mut().zip(times.unwrap_or_default()) {
        *stamp = Stamp::instant(stamp.start + time);
    }
}

/// The cells of a text column.
pub(crate) fn texts(column: &dyn Array) -> Option<Vec<Option<&str>>> {
    Some(match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().iter().collect(),
        DataType::LargeUtf8 => column.as_string::<i64>().iter().collect(),
        DataType::Utf8View => column.as_string_view().iter().collect(),
        _ => return None,
    })
}

/// The dates of a column; `None` if a date is missing or invalid. Numbers count as dates only if the column's
/// name says so.
pub(crate) fn column_dates(column: &dyn Array, numbers: bool) -> Option<Vec<Stamp>> {
    if column.null_count() > 0 {
        return None;
    }
    let integers = || {
        Some(
            cast(column, &DataType::Int64)
                .ok()?
                .as_primitive::<Int64Type>()
                .values()
                .to_vec(),
        )
    };
    let instants = |micros: fn(i64) -> i64| {
        let instants = integers()?.into_iter().map(|value| Stamp::instant(micros(value)));
        Some(settle(instants.collect()))
    };
    match column.data_type() {
        DataType::Date32 => {
            let days = column.as_primitive::<Date32Type>().values();
            Some(days.iter().map(|&day| Stamp::day(Date(day))).collect())
        }
        DataType::Timestamp(TimeUnit::Second, _) => instants(|value| value.saturating_mul(SECOND)),
        DataType::Timestamp(TimeUnit::Millisecond, _) | DataType::Date64 => {
            instants(|value| value.saturating_mul(1000))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => instants(|value| value),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => instants(|value| value.div_euclid(1000)),
        DataType::Int64 | DataType::Int32 if numbers => number_dates(integers()?.into_iter()),
        _ => {
            let cells: Option<Vec<&str>> = texts(column)?.into_iter().collect();
            text_dates(&cells?, numbers)
        }
    }
}

/// The dates of integers: eight-digit numbers, or other numbers in a column whose name says so.
pub(crate) fn integer_dates(values: impl Iterator<Item = i64> + Clone, named: bool) -> Option<Vec<Stamp>> {
    let eight_digits = || values.clone().all(|value| (10_000_000..100_000_000).contains(&value));
    (named || eight_digits())
        .then(|| number_dates(values.clone()))
        .flatten()
}

/// Dates such as 20240131, or seconds, milliseconds, microseconds or nanoseconds since 1970.
fn number_dates(values: impl Iterator<Item = i64> + Clone) -> Option<Vec<Stamp>> {
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
    // The accepted range is 1980 to 2100.
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

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::SnapshotTime;
    use stages_core::table;

    #[test]
    fn the_rows_of_a_chain_are_known_at_their_snapshots() {
        let batch = |instants: [Option<i64>; 2]| {
            let times = instants.map(|instant| SnapshotTime {
                date: Date(2),
                instant,
            });
            RecordBatch::try_from_iter(table::time_columns(times)).unwrap()
        };
        let instants = [2 * DAY + 15 * 3600 * SECOND, 2 * DAY + 20 * 3600 * SECOND];
        let (column, stamps) = table_dates(&batch(instants.map(Some))).unwrap();
        assert_eq!((column, stamps), (0, instants.map(Stamp::instant).to_vec()));
        let (_, stamps) = table_dates(&batch([None, None])).unwrap();
        assert_eq!(stamps, [Stamp::day(Date(2)); 2]);
    }
}
