//! Holidays that follow a rule.

use crate::Date;

/// Returns true if `date` is the n-th given weekday of its month (0 is Monday).
pub(super) fn nth_weekday(date: Date, n: u32, weekday: u32) -> bool {
    date.weekday() == weekday && (date.ymd().2 - 1) / 7 + 1 == n
}

/// Returns true if a fixed holiday is observed on `date`: a holiday on a Saturday is observed on Friday, a
/// holiday on a Sunday on Monday.
pub(super) fn observed(date: Date, month: u32, day: u32) -> bool {
    Date::from_ymd(date.ymd().0, month, day).is_some_and(|holiday| match holiday.weekday() {
        5 => date == holiday.plus(-1),
        6 => date == holiday.plus(1),
        _ => date == holiday,
    })
}

/// Returns true if all of Eurex is closed on a weekday: New Year's Day, Good Friday, Easter Monday, Labour
/// Day, Christmas Eve, Christmas and the day after, New Year's Eve (Eurex trading calendar). Days on which
/// only the products of one country are closed are not included.
pub(super) fn is_eurex_holiday(date: Date) -> bool {
    let (year, month, day) = date.ymd();
    matches!((month, day), (1, 1) | (5, 1) | (12, 24..=26 | 31))
        || date == good_friday(year)
        || date == easter(year).plus(1)
}

/// Good Friday of a year of the Gregorian calendar.
pub fn good_friday(year: i32) -> Date {
    easter(year).plus(-2)
}

/// Easter Sunday (Butcher's algorithm, Meeus, "Astronomical Algorithms", chapter 8).
pub(super) fn easter(year: i32) -> Date {
    let a = year.rem_euclid(19);
    let (b, c) = (year.div_euclid(100), year.rem_euclid(100));
    let (d, e) = (b / 4, b % 4);
    let f = (b + 8) / 25;
    let g = (b - f + 1) / 3;
    let h = (19 * a + b - d - g + 15) % 30;
    let (i, k) = (c / 4, c % 4);
    let l = (32 + 2 * e + 2 * i - h - k) % 7;
    let m = (a + 11 * h + 22 * l) / 451;
    let n = h + l - 7 * m + 114;
    // The algorithm yields a day of March or April of any year.
    Date::from_ymd(year, (n / 31) as u32, (n % 31 + 1) as u32).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crate::Date;
    use crate::calendar::{CalendarName, is_trading_day};

    fn open(calendar: CalendarName, day: &str) -> bool {
        is_trading_day(calendar, day.parse::<Date>().unwrap())
    }

    #[test]
    fn eurex() {
        for day in [
            "2019-01-01",
            "2019-04-19",
            "2019-04-22",
            "2019-05-01",
            "2018-12-24",
            "2018-12-25",
            "2018-12-26",
            "2018-12-31",
        ] {
            assert!(!open(CalendarName::Eurex, day), "{day}");
        }
        for day in ["2019-07-04", "2019-11-28", "2020-05-04", "2019-12-27", "2019-12-30"] {
            assert!(open(CalendarName::Eurex, day), "{day}");
        }
    }

    #[test]
    fn cme_keeps_the_holidays_and_not_the_closures_of_the_stock_exchanges() {
        for day in ["2019-07-04", "2019-11-28", "2019-12-25", "2022-06-20"] {
            assert!(!open(CalendarName::Cme, day), "{day}");
        }
        for day in ["2018-12-05", "2012-10-30", "2019-10-14"] {
            assert!(open(CalendarName::Cme, day), "{day}");
        }
        assert!(!open(CalendarName::Cboe, "2018-12-05"));
    }

    #[test]
    fn around_the_clock() {
        assert!(open(CalendarName::Always, "2021-12-25"));
        assert!(CalendarName::Always.knows_holidays());
        assert!(!CalendarName::None.knows_holidays());
        let read = |text: &str| {
            serde::de::Deserialize::deserialize(
                serde::de::value::StrDeserializer::<serde::de::value::Error>::new(text),
            )
        };
        assert_eq!(read("24/7"), Ok(CalendarName::Always));
        assert_eq!(read("nyse"), Ok(CalendarName::Us));
        for name in CalendarName::all() {
            assert_eq!(read(name.name()), Ok(name));
        }
    }
}
