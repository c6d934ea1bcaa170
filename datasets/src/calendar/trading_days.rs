//! Trading days of a calendar, and days of expiry.

use super::holidays::{HKEX, NSE, SSE};
use super::{CalendarName, rules, us};
use crate::Date;
use std::collections::BTreeSet;

const FRIDAY: u32 = 4;

/// Returns true if the exchange is open on `date` according to the calendar.
pub fn is_trading_day(calendar: CalendarName, date: Date) -> bool {
    match calendar {
        CalendarName::None | CalendarName::Always => true,
        // The exchange has special sessions on Saturdays and Sundays.
        CalendarName::Nse if date.is_weekend() => NSE.has_special_session(date),
        _ if date.is_weekend() => false,
        CalendarName::Weekends => true,
        CalendarName::Us | CalendarName::Cboe => !us::is_us_holiday(date),
        CalendarName::Cme => !us::is_holiday_by_rule(date),
        CalendarName::Eurex => !rules::is_eurex_holiday(date),
        CalendarName::Sse => !SSE.contains(date),
        CalendarName::Nse => !NSE.contains(date),
        CalendarName::Hkex => !HKEX.contains(date),
    }
}

/// Returns true if a calendar fits data of these days: it does not if more than a twentieth of the days, and
/// at least twenty, would be closed.
pub fn fits(calendar: CalendarName, days: &BTreeSet<Date>) -> bool {
    let closed = days.iter().filter(|day| !is_trading_day(calendar, **day)).count();
    closed < 20 || closed * 20 <= days.len()
}

/// Returns whether the exchange closes three hours early on `date`. Only the calendars of the United States'
/// stock and options exchanges have a list of such days.
pub fn closes_early(calendar: CalendarName, date: Date) -> bool {
    matches!(calendar, CalendarName::Us | CalendarName::Cboe)
        && is_trading_day(calendar, date)
        && us::closes_early(date)
}

/// The hour on `date` at which an event of the exchange's regular day occurs: three hours earlier for an
/// afternoon hour of a day on which the exchange closes early.
pub fn local_hour(calendar: CalendarName, date: Date, hour: f64) -> f64 {
    if hour > 13.0 && closes_early(calendar, date) {
        hour - 3.0
    } else {
        hour
    }
}

/// The first day after `date` on which the exchange is open.
pub fn next_trading_day(calendar: CalendarName, date: Date) -> Date {
    let mut next = date.plus(1);
    while !is_trading_day(calendar, next) {
        next = next.plus(1);
    }
    next
}

/// The last day before `date` on which the exchange is open.
pub fn previous_trading_day(calendar: CalendarName, date: Date) -> Date {
    let mut previous = date.plus(-1);
    while !is_trading_day(calendar, previous) {
        previous = previous.plus(-1);
    }
    previous
}

/// The third Friday of a month (1 to 12).
pub fn third_friday(year: i32, month: u32) -> Date {
    // Every month has the days 15 to 21.
    let fifteenth = Date::from_ymd(year, month, 15).unwrap_or_default();
    fifteenth.plus((FRIDAY + 7 - fifteenth.weekday()) as i32 % 7)
}

/// The day on which options listed to `listed` expire: if the exchange is closed on that day, the previous
/// trading day; in Shanghai, the next trading day.
pub fn expiry_of(calendar: CalendarName, listed: Date) -> Date {
    if is_trading_day(calendar, listed) {
        listed
    } else if calendar == CalendarName::Sse {
        next_trading_day(calendar, listed)
    } else {
        previous_trading_day(calendar, listed)
    }
}

/// The day on which the monthly options of a month (1 to 12) expire: the third Friday, or the trading day
/// before.
pub fn monthly_expiry(calendar: CalendarName, year: i32, month: u32) -> Date {
    expiry_of(calendar, third_friday(year, month))
}

/// The first Friday on or after `date`.
pub fn friday_on_or_after(date: Date) -> Date {
    date.plus((FRIDAY + 7 - date.weekday()) as i32 % 7)
}
