//! Tables of days: of exchanges that close by announcement rather than by rule, and of closures outside any
//! rule.

use crate::Date;
use crate::contract::TimeOfDay;
use std::sync::LazyLock;

/// The days on which an exchange departs from the rule that it is open from Monday to Friday, all day.
///
/// The text of a table has a line for each year, `YEAR MONTH-DAY …`, in order of days: a day of the week
/// without trading; after `+` one of the weekend with trading; after `<` a half day, with the time of its
/// close after `@` where that is not the exchange's usual one. `sun-thu` after the year: the week of that
/// year is from Sunday to Thursday. `#` begins a comment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Holidays {
    /// The first and the last year of the table.
    pub years: (i32, i32),
    /// Days from Monday to Friday without trading, in order.
    closed: Vec<Date>,
    /// Saturdays and Sundays with trading, in order.
    open: Vec<Date>,
    /// Half days, in order, with the close where it is stated.
    half_days: Vec<(Date, Option<TimeOfDay>)>,
}

/// The days on which the exchanges of the United States were closed outside any rule, and their half days.
pub(super) static US_CLOSURES: LazyLock<Holidays> =
    LazyLock::new(|| Holidays::embedded(include_str!("../../calendars/us_closures.txt")));

const FRIDAY: u32 = 4;
const SUNDAY: u32 = 6;

impl Holidays {
    /// Parses a table embedded in the program.
    pub(super) fn embedded(text: &str) -> Self {
        Self::parse(text).unwrap_or_else(|line| panic!("`{line}` is not a line of a table of holidays"))
    }

    /// Parses the text of a table; the error is the first invalid line.
    fn parse(text: &str) -> Result<Self, &str> {
        let (mut closed, mut open, mut half_days) = (Vec::new(), Vec::new(), Vec::new());
        let mut years: Vec<i32> = Vec::new();
        for line in text.lines() {
            let mut words = line.split('#').next().unwrap_or("").split_whitespace().peekable();
            let Some(year) = words.next() else { continue };
            years.push(year.parse().map_err(|_| line)?);
            let begins_on_sunday = words.next_if_eq(&"sun-thu").is_some();
            let mut exceptions: Vec<Date> = Vec::new();
            for word in words {
                let (day, time) = match word.trim_start_matches(['+', '<']).split_once('@') {
                    Some((day, time)) => (day, Some(time.parse().map_err(|_| line)?)),
                    None => (word.trim_start_matches(['+', '<']), None),
                };
                let date: Date = format!("{year}-{day}").parse().map_err(|_| line)?;
                let list_end = match word.as_bytes().first() {
                    Some(b'<') => {
                        let last = half_days.last().map(|(last, _)| *last);
                        half_days.push((date, time));
                        last
                    }
                    sign => {
                        let of_weekend = match begins_on_sunday {
                            true => (FRIDAY..SUNDAY).contains(&date.weekday()),
                            false => date.is_weekend(),
                        };
                        if time.is_some() || (sign == Some(&b'+')) != of_weekend {
                            return Err(line);
                        }
                        exceptions.push(date);
                        exceptions.len().checked_sub(2).map(|last| exceptions[last])
                    }
                };
                if list_end.is_some_and(|last| last >= date) {
                    return Err(line);
                }
            }
            if begins_on_sunday {
                let day = |month, day| Date::from_ymd(years[years.len() - 1], month, day).unwrap_or_default();
                let turned = (day(1, 1).0..=day(12, 31).0).map(Date);
                let turned = turned.filter(|day| matches!(day.weekday(), FRIDAY | SUNDAY));
                for day in turned {
                    match exceptions.binary_search(&day) {
                        Ok(found) => drop(exceptions.remove(found)),
                        Err(place) => exceptions.insert(place, day),
                    }
                }
            }
            let (weekend, week) = exceptions.into_iter().partition::<Vec<_>, _>(|day| day.is_weekend());
            open.extend(weekend);
            closed.extend(week);
        }
        match (years.first(), years.last()) {
            (Some(first), Some(last)) => Ok(Self {
                years: (*first, *last),
                closed,
                open,
                half_days,
            }),
            _ => Err(""),
        }
    }

    /// Returns whether there is trading on a day; from Monday to Friday in years beyond the table.
    pub(super) fn is_open(&self, date: Date) -> bool {
        match date.is_weekend() {
            true => self.open.binary_search(&date).is_ok(),
            false => !self.is_closed(date),
        }
    }

    /// Returns true if a day from Monday to Friday has no trading.
    pub(super) fn is_closed(&self, date: Date) -> bool {
        self.closed.binary_search(&date).is_ok()
    }

    /// The half day of a date: the stated close, or `None` for the usual one.
    pub(super) fn half_day(&self, date: Date) -> Option<Option<TimeOfDay>> {
        let place = self.half_days.binary_search_by_key(&date, |(day, _)| *day).ok()?;
        Some(self.half_days[place].1)
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
        for exchange in CalendarName::all() {
            assert!(exchange.range().is_none_or(|(first, last)| first < last), "{exchange}");
        }
        let ranges = [CalendarName::Sse, CalendarName::Nse, CalendarName::Hkex].map(CalendarName::range);
        assert_eq!(ranges, [(1991, 2026), (1997, 2026), (1990, 2027)].map(Some));
        for wrong in [
            "2019 13-01",
            "x 01-01",
            "2019 01-02 01-01",
            "2019 01-05",
            "2019 +01-04",
            "2019 01-04@12:00",
            "2019 <01-04@25:00",
            "2019 sun-thu 01-04",
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
