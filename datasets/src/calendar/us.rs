//! The stock exchanges of the United States: NYSE Rule 7.2, which the options exchanges follow.

use super::good_friday;
use super::holidays::US_CLOSURES;
use super::rules::{nth_weekday, observed};
use crate::Date;
use crate::contract::TimeOfDay;

const FRIDAY: u32 = 4;
const THURSDAY: u32 = 3;
const MONDAY: u32 = 0;

/// Returns whether the United States exchanges are closed on this weekday.
pub fn is_us_holiday(date: Date) -> bool {
    is_holiday_by_rule(date) || US_CLOSURES.is_closed(date)
}

/// Returns true if a weekday is a holiday by rule.
pub(super) fn is_holiday_by_rule(date: Date) -> bool {
    let (year, month, day) = date.ymd();
    let weekday = date.weekday();
    let by_rule = match month {
        // New Year's Day on a Saturday is not observed: the Friday before ends a year.
        1 => {
            (day == 1 && weekday != 5)
                || (day == 2 && weekday == MONDAY)
                || (year >= 1998 && nth_weekday(date, 3, MONDAY)) // Martin Luther King
        }
        2 => nth_weekday(date, 3, MONDAY),          // Washington's birthday
        5 => weekday == MONDAY && day > 24,         // Memorial Day
        6 => year >= 2022 && observed(date, 6, 19), // Juneteenth
        7 => observed(date, 7, 4),
        9 => nth_weekday(date, 1, MONDAY),    // Labor Day
        11 => nth_weekday(date, 4, THURSDAY), // Thanksgiving
        12 => observed(date, 12, 25),
        _ => false,
    };
    by_rule || date == good_friday(year)
}

/// The half day of a date: its close where that is not 13:00. Half days are those before Independence Day,
/// after Thanksgiving and before Christmas (NYSE Rule 7.2 and its yearly announcements, from 1993 on), and
/// those without a rule.
pub(super) fn half_day(date: Date) -> Option<Option<TimeOfDay>> {
    let is_by_rule = is_half_day_by_rule(date).then_some(None);
    is_by_rule.or_else(|| US_CLOSURES.half_day(date))
}

fn is_half_day_by_rule(date: Date) -> bool {
    let (year, month, day) = date.ymd();
    let weekday = date.weekday();
    match (month, day) {
        _ if year < 1993 => false,
        // Until 2012, if Independence Day was a Thursday, the Friday after closed early instead.
        (7, 3) => year >= 2013 || weekday != THURSDAY - 1,
        (7, 5) => year < 2013 && weekday == FRIDAY,
        (12, 24) => true,
        (11, _) => weekday == FRIDAY && is_us_holiday(date.plus(-1)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use crate::Date;
    use crate::calendar::holidays::trading_days;

    fn date(text: &str) -> Date {
        text.parse().unwrap()
    }

    #[test]
    fn known_holidays() {
        for closed in [
            "2019-01-01",
            "2019-01-21",
            "2019-02-18",
            "2019-04-19",
            "2019-05-27",
            "2019-07-04",
            "2019-09-02",
            "2019-11-28",
            "2019-12-25",
            "2012-10-29",
            "2001-09-14",
            "2020-07-03",
            "2021-12-24",
            "2022-06-20",
            "2022-12-26",
            "2023-01-02",
            "2010-04-02",
            "2025-01-09",
            "2027-06-18",
            "1998-01-19",
            "2024-03-29",
            "2000-04-21",
        ] {
            assert!(!is_trading_day(CalendarName::Us, date(closed)), "{closed}");
            assert!(is_trading_day(CalendarName::Weekends, date(closed)), "{closed}");
        }
        for open in [
            "2021-12-31",
            "2010-12-31",
            "2011-01-03",
            "2021-06-18",
            "1997-01-20",
            "2019-07-05",
            "2018-12-24",
            "2020-07-06",
            "2019-10-14",
            "2019-11-11",
            "2020-04-13",
        ] {
            assert!(is_trading_day(CalendarName::Us, date(open)), "{open}");
        }
    }

    #[test]
    fn trading_days_a_year() {
        // Counts that the exchange published.
        for (year, days) in [
            (1990, 253),
            (1994, 252),
            (1995, 252),
            (1998, 252),
            (2000, 252),
            (2001, 248),
            (2004, 252),
            (2007, 251),
            (2012, 250),
            (2015, 252),
            (2016, 252),
            (2017, 251),
            (2018, 251),
            (2019, 252),
            (2020, 253),
            (2021, 252),
            (2022, 251),
            (2023, 250),
            (2024, 252),
            (2025, 250),
        ] {
            assert_eq!(trading_days(CalendarName::Us, year), days, "{year}");
        }
    }

    #[test]
    fn early_closes() {
        let early = |text| early_close(CalendarName::Us, date(text)).is_some();
        for day in [
            "1997-12-26",
            "1999-12-31",
            "2003-12-26",
            "2008-07-03",
            "2002-07-05",
            "2018-07-03",
            "2019-07-03",
            "2019-11-29",
            "2019-12-24",
            "2023-07-03",
            "2024-07-03",
            "2024-12-24",
        ] {
            assert!(early(day), "{day}");
        }
        // A Friday on which Independence Day is kept; Saturdays; days like any other.
        for day in [
            "2020-07-03",
            "2021-12-24",
            "2022-12-24",
            "2002-07-03",
            "2019-11-28",
            "2019-11-22",
            "2019-12-23",
            "2022-07-05",
        ] {
            assert!(!early(day), "{day}");
        }
        assert_eq!(early_close(CalendarName::Weekends, date("2019-12-24")), None);
    }

    #[test]
    fn expiries() {
        let us = CalendarName::Us;
        assert_eq!(monthly_expiry(us, 2019, 6), date("2019-06-21"));
        // Good Friday and Juneteenth on a third Friday.
        assert_eq!(monthly_expiry(us, 2019, 4), date("2019-04-18"));
        assert_eq!(monthly_expiry(us, 2026, 6), date("2026-06-18"));
        assert_eq!(monthly_expiry(us, 2014, 4), date("2014-04-17"));
        assert_eq!(third_friday(2021, 10), date("2021-10-15"));
        assert_eq!(friday_on_or_after(date("2019-06-21")), date("2019-06-21"));
        assert_eq!(friday_on_or_after(date("2019-06-22")), date("2019-06-28"));
        assert_eq!(next_trading_day(us, date("2019-04-18")), date("2019-04-22"));
        assert_eq!(previous_trading_day(us, date("2019-04-22")), date("2019-04-18"));
    }
}
