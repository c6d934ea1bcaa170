//! Settings and checks shared by the stages of this family.

pub use crate::bad_rows::{MaxDropped, OnBadRows, Treatment};
use crate::value::OUT_OF_RANGE;
use arrow_array::{RecordBatch, UInt32Array};
use arrow_select::take::take_record_batch;
use datasets::calendar::fits;
use datasets::layout::CalendarName;
use datasets::{Date, DateRange};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use stages_core::dataset::Period;
use stages_core::{ConfigProblem, StageError, table};
use std::collections::BTreeSet;
use std::fmt;

/// The first supported date: 1800-01-01.
const FIRST_DATE: Date = Date(-62_091);

/// Refuses a range of dates that ends before it begins, or that begins after `until`.
pub fn check_dates(dates: Option<DateRange>, until: Option<Date>) -> Result<(), ConfigProblem> {
    match (dates, until) {
        (Some(dates), _) if dates.to < dates.from => Err(ConfigProblem::new(
            "dates",
            format!("{} is before {}", dates.to, dates.from),
        )
        .hint("both ends are included")),
        (Some(dates), Some(until)) if until < dates.from => Err(ConfigProblem::new(
            "until",
            format!("{until} is before {}, where `dates` begin", dates.from),
        )
        .hint("let `dates` begin earlier")),
        _ => Ok(()),
    }
}

/// The dates whose rows are kept: `dates`, but none after `until`.
pub fn dates_until(dates: Option<DateRange>, until: Option<Date>) -> Option<DateRange> {
    let Some(until) = until else { return dates };
    let dates = dates.unwrap_or(DateRange {
        from: FIRST_DATE,
        to: until,
    });
    Some(DateRange {
        to: dates.to.min(until),
        ..dates
    })
}

/// Returns whether a row of this date counts: the date is supported, and not after `until`.
pub fn is_there(date: Date, until: Option<Date>) -> bool {
    date != OUT_OF_RANGE && until.is_none_or(|until| date <= until)
}

/// The rows of a table up to and including a date.
pub fn rows_until(batch: RecordBatch, until: Option<Date>) -> Result<RecordBatch, StageError> {
    if until.is_none() {
        return Ok(batch);
    }
    let dates = table::dates(&batch, "date")?;
    let rows = (0..).zip(dates).filter(|(_, date)| is_there(*date, until));
    let rows: UInt32Array = rows.map(|(row, _)| Some(row)).collect();
    match rows.len() == batch.num_rows() {
        true => Ok(batch),
        false => Ok(take_record_batch(&batch, &rows)?),
    }
}

/// The days on which data is expected: `auto` or a calendar's name. Auto is as the layout or the exchange's
/// specification says; none where more than a twentieth of the days, and at least twenty, would be closed by
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CalendarChoice(Option<CalendarName>);

/// The word for the calendar that suits the data.
const AUTO: &str = "auto";

impl Serialize for CalendarChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            None => serializer.serialize_str(AUTO),
            Some(name) => name.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for CalendarChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> de::Visitor<'de> for Read {
            type Value = CalendarChoice;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`auto`, a calendar's name, or `{ base: …, closed: [DATE, …] }`")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<CalendarChoice, E> {
                match text {
                    AUTO => Ok(CalendarChoice(None)),
                    name => name.parse().map(|name| CalendarChoice(Some(name))).map_err(E::custom),
                }
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<CalendarChoice, A::Error> {
                let map = de::value::MapAccessDeserializer::new(map);
                CalendarName::deserialize(map).map(|changed| CalendarChoice(Some(changed)))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl JsonSchema for CalendarChoice {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CalendarChoice".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let name = generator.subschema_for::<CalendarName>();
        schemars::json_schema!({
            "description": "auto, or the name of a calendar.",
            "anyOf": [{ "const": AUTO }, name]
        })
    }
}

impl CalendarChoice {
    /// The named calendar; `None` for `auto`.
    pub const fn name(self) -> Option<CalendarName> {
        self.0
    }

    /// The calendar for data on the given days.
    pub fn resolve(self, layout_calendar: CalendarName, days: &BTreeSet<Date>) -> CalendarName {
        match self.name() {
            Some(name) => name,
            None if fits(layout_calendar, days) => layout_calendar,
            None => CalendarName::None,
        }
    }
}

/// The period of partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PartitionChoice {
    /// Years of bars and rates. Of chains months, or days where the first day has more than 5,000 rows.
    #[default]
    Auto,
    /// A day each.
    Day,
    /// A calendar month each.
    Month,
    /// A calendar year each.
    Year,
}

impl PartitionChoice {
    /// The period for a table whose first day has `rows` rows.
    pub fn resolve(self, rows: usize, small: Period) -> Period {
        match self {
            Self::Auto => Period::of_rows(rows, small),
            Self::Day => Period::Day,
            Self::Month => Period::Month,
            Self::Year => Period::Year,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calendar_that_does_not_fit_is_not_used() {
        let days = |step: usize| (0..400).step_by(step).map(Date).collect::<BTreeSet<_>>();
        assert_eq!(
            CalendarChoice::default().resolve(CalendarName::Weekends, &days(1)),
            CalendarName::None
        );
        assert_eq!(
            CalendarChoice(Some(CalendarName::Weekends)).resolve(CalendarName::Us, &days(1)),
            CalendarName::Weekends
        );
        let weekdays = days(1).into_iter().filter(|day| !day.is_weekend()).collect();
        assert_eq!(
            CalendarChoice::default().resolve(CalendarName::Weekends, &weekdays),
            CalendarName::Weekends
        );
    }
}
