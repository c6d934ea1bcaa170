//! Calendar dates.

use chrono::{Datelike, NaiveDate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A day of the proleptic Gregorian calendar, as days since 1970-01-01 (Arrow's `Date32`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Date(pub i32);

const EPOCH_FROM_CE: i32 = 719_163;

impl Date {
    /// The day `day` of `month` (1 to 12) of `year`; `None` when there is no such day.
    pub fn from_ymd(year: i32, month: u32, day: u32) -> Option<Self> {
        NaiveDate::from_ymd_opt(year, month, day).map(Self::from)
    }

    /// Year, month (1 to 12) and day (1 to 31).
    pub fn ymd(self) -> (i32, u32, u32) {
        let date = NaiveDate::from(self);
        (date.year(), date.month(), date.day())
    }

    /// The weekday, from 0 for Monday to 6 for Sunday.
    pub fn weekday(self) -> u32 {
        (self.0 + 3).rem_euclid(7) as u32
    }

    /// Returns true if the day is a Saturday or a Sunday.
    pub fn is_weekend(self) -> bool {
        self.weekday() >= 5
    }

    /// The day that is `days` after this day.
    pub fn plus(self, days: i32) -> Self {
        Self(self.0 + days)
    }
}

impl From<NaiveDate> for Date {
    fn from(date: NaiveDate) -> Self {
        Self(date.num_days_from_ce() - EPOCH_FROM_CE)
    }
}

impl From<Date> for NaiveDate {
    fn from(date: Date) -> Self {
        // A day outside the calendar becomes the calendar's first or last day, which cannot be meant.
        let beyond = if date.0 < 0 { NaiveDate::MIN } else { NaiveDate::MAX };
        NaiveDate::from_num_days_from_ce_opt(date.0.saturating_add(EPOCH_FROM_CE)).unwrap_or(beyond)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&NaiveDate::from(*self).to_string())
    }
}

impl fmt::Debug for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Date {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        NaiveDate::parse_from_str(text, "%Y-%m-%d")
            .map(Self::from)
            .map_err(|_| format!("`{text}` is not a date; write it as 2019-06-28"))
    }
}

crate::as_text!(Date, "Date", r"^\d{4}-\d{2}-\d{2}$", "A date, such as 2019-06-28.");

/// A range of dates, both ends included. In YAML: `{ from: 2019-04-25, to: 2019-06-28 }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DateRange {
    /// The first day.
    pub from: Date,
    /// The last day.
    pub to: Date,
}

impl DateRange {
    /// The days that both ranges have; it ends before it begins if there are none.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self {
            from: self.from.max(other.from),
            to: self.to.min(other.to),
        }
    }

    /// Returns whether `date` is in the range.
    pub fn contains(&self, date: Date) -> bool {
        self.from <= date && date <= self.to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_round_trip() {
        assert_eq!(Date::from_ymd(1970, 1, 1), Some(Date(0)));
        let date: Date = "2019-06-28".parse().unwrap();
        assert_eq!(date.ymd(), (2019, 6, 28));
        assert_eq!(date.weekday(), 4);
        assert_eq!(date.plus(3).to_string(), "2019-07-01");
        assert!("2019-02-30".parse::<Date>().is_err());
    }
}
