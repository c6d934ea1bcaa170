//! Tables of holidays, for exchanges that close by announcement rather than by rule.

use crate::Date;
use std::sync::LazyLock;

/// The days on which an exchange departs from the rule that it is open from Monday to Friday.
///
/// The text of a table has a line for each year, `YEAR MONTH-DAY …`, in order: weekdays without trading,
/// followed after `+` by weekend days with trading. `#` begins a comment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Holidays {
    /// The first and the last year of the table.
    pub years: (i32, i32),
    /// Weekdays without trading, in order.
    closed: Vec<Date>,
    /// Weekend days with trading, in order.
    open: Vec<Date>,
}

pub(super) static SSE: LazyLock<Holidays> =
    LazyLock::new(|| Holidays::embedded(include_str!("../../calendars/sse.txt")));
pub(super) static NSE: LazyLock<Holidays> =
    LazyLock::new(|| Holidays::embedded(include_str!("../../calendars/nse.txt")));
pub(super) static HKEX: LazyLock<Holidays> =
    LazyLock::new(|| Holidays::embedded(include_str!("../../calendars/hkex.txt")));

/// The days on which the exchanges of the United States were closed outside any rule.
pub(super) static US_CLOSURES: LazyLock<Holidays> =
    LazyLock::new(|| Holidays::embedded(include_str!("../../calendars/us_closures.txt")));

impl Holidays {
    /// Parses a table embedded in the program.
    fn embedded(text: &str) -> Self {
        Self::parse(text).unwrap_or_else(|line| panic!("`{line}` is not a line of a table of holidays"))
    }

    /// Parses the text of a table; the error is the first invalid line.
    fn parse(text: &str) -> Result<Self, &str> {
        let (mut years, mut closed, mut open) = (Vec::new(), Vec::new(), Vec::new());
        for line in text.lines() {
            let mut words = line.split('#').next().unwrap_or("").split_whitespace();
            let Some(year) = words.next() else { continue };
            years.push(year.parse().map_err(|_| line)?);
            for word in words {
                let day = word.trim_start_matches('+');
                let date: Date = format!("{year}-{day}").parse().map_err(|_| line)?;
                let list = if word == day { &mut closed } else { &mut open };
                if list.last().is_some_and(|last| *last >= date) || date.is_weekend() == (word == day) {
                    return Err(line);
                }
                list.push(date);
            }
        }
        match (years.first(), years.last()) {
            (Some(first), Some(last)) => Ok(Self {
                years: (*first, *last),
                closed,
                open,
            }),
            _ => Err(""),
        }
    }

    /// Returns true if the exchange is closed on a weekday; false in years that the table does not cover.
    pub(super) fn contains(&self, date: Date) -> bool {
        self.closed.binary_search(&date).is_ok()
    }

    /// Returns true if there is trading on a weekend day.
    pub(super) fn has_special_session(&self, date: Date) -> bool {
        self.open.binary_search(&date).is_ok()
    }
}

/// The number of trading days in a year.
#[cfg(test)]
pub(super) fn trading_days(calendar: super::CalendarName, year: i32) -> usize {
    let day = |month, day| Date::from_ymd(year, month, day).unwrap().0;
    let days = (day(1, 1)..=day(12, 31)).map(Date);
    days.filter(|day| super::is_trading_day(calendar, *day)).count()
}

#[cfg(test)]
mod tests {
    use super::super::{CalendarName, expiry_of, is_trading_day};
    use super::*;

    #[test]
    fn the_tables_are_parsed() {
        for text in [
            include_str!("../../calendars/sse.txt"),
            include_str!("../../calendars/nse.txt"),
            include_str!("../../calendars/hkex.txt"),
            include_str!("../../calendars/us_closures.txt"),
        ] {
            Holidays::parse(text).unwrap();
        }
        assert_eq!(
            (SSE.years, NSE.years, HKEX.years),
            ((2015, 2026), (2015, 2025), (2015, 2026))
        );
        for wrong in [
            "2019 13-01",
            "x 01-01",
            "2019 01-02 01-01",
            "2019 01-05",
            "2019 +01-04",
            "",
        ] {
            assert_eq!(Holidays::parse(wrong), Err(wrong));
        }
    }

    mod sse {
        use super::*;

        #[test]
        fn trading_days_a_year() {
            // Trading days of each year by the exchange's statistical yearbooks.
            for (year, days) in [
                (2015, 244),
                (2016, 244),
                (2017, 244),
                (2018, 243),
                (2019, 244),
                (2020, 243),
                (2021, 243),
                (2022, 242),
                (2023, 242),
                (2024, 242),
                (2025, 243),
            ] {
                assert_eq!(trading_days(CalendarName::Sse, year), days, "{year}");
            }
        }

        #[test]
        fn christmas_is_a_day_of_expiry() {
            // The fourth Wednesday of December 2019 and of December 2024.
            for day in ["2019-12-25", "2024-12-25"] {
                let day: Date = day.parse().unwrap();
                assert!(is_trading_day(CalendarName::Sse, day));
                assert_eq!(expiry_of(CalendarName::Sse, day), day);
            }
            // A listed day within the holidays: the first trading day after.
            let day = |text: &str| text.parse::<Date>().unwrap();
            assert_eq!(expiry_of(CalendarName::Sse, day("2023-01-25")), day("2023-01-30"));
        }
    }

    mod hkex {
        use super::*;

        #[test]
        fn known_days() {
            let open = |text: &str| is_trading_day(CalendarName::Hkex, text.parse().unwrap());
            // The Lunar New Year, Buddha's birthday, a typhoon; the first of May on a Sunday.
            for day in ["2019-02-05", "2023-05-26", "2017-08-23", "2022-05-02"] {
                assert!(!open(day), "{day}");
            }
            // A half day, a Saturday's holiday that is not moved, a first of January on a Saturday.
            for day in ["2019-12-24", "2016-10-03", "2022-01-03"] {
                assert!(open(day), "{day}");
            }
        }

        #[test]
        fn trading_days_a_year() {
            // Trading days of each year by the exchange's fact books.
            for (year, days) in [
                (2015, 247),
                (2017, 246),
                (2018, 246),
                (2019, 246),
                (2021, 247),
                (2022, 246),
            ] {
                assert_eq!(trading_days(CalendarName::Hkex, year), days, "{year}");
            }
        }
    }

    mod nse {
        use super::*;

        fn date(text: &str) -> Date {
            text.parse().unwrap()
        }

        #[test]
        fn known_days() {
            for day in ["2024-01-22", "2023-06-29", "2019-04-29", "2020-10-02", "2021-11-05"] {
                assert!(!is_trading_day(CalendarName::Nse, date(day)), "{day}");
            }
            // Muhurat trading on a weekday and on a Sunday; a Saturday with the budget; Christmas Eve.
            for day in ["2021-11-04", "2023-11-12", "2025-02-01", "2024-12-24"] {
                assert!(is_trading_day(CalendarName::Nse, date(day)), "{day}");
            }
            assert!(!is_trading_day(CalendarName::Nse, date("2025-02-08")));
            // A Thursday of expiry that was a holiday.
            assert_eq!(expiry_of(CalendarName::Nse, date("2023-03-30")), date("2023-03-29"));
        }
    }
}
