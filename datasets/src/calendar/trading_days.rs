//! Trading days of a calendar, and days of expiry.

use super::name::time;
use super::{CalendarName, rules, us};
use crate::Date;
use crate::contract::TimeOfDay;
use std::collections::BTreeSet;

const FRIDAY: u32 = 4;

/// Returns true if the exchange is open on `date` according to the calendar.
pub fn is_trading_day(calendar: CalendarName, date: Date) -> bool {
    match calendar {
        CalendarName::None | CalendarName::Always => true,
        CalendarName::Changed(changes) => {
            let is_open = changes.open.contains(&date) || is_trading_day(changes.base, date);
            is_open && !changes.closed.contains(&date)
        }
        _ if let Some(listed) = calendar.listed() => listed.days().is_open(date),
        _ if date.is_weekend() => false,
        CalendarName::Us | CalendarName::Cboe => !us::is_us_holiday(date),
        CalendarName::Cme => !us::is_holiday_by_rule(date),
        CalendarName::Eurex => !rules::is_eurex_holiday(date),
        _ => true,
    }
}

/// Returns true if a calendar fits data of these days: it does not if more than a twentieth of the days, and
/// at least twenty, would be closed.
pub fn fits(calendar: CalendarName, days: &BTreeSet<Date>) -> bool {
    let closed = days.iter().filter(|day| !is_trading_day(calendar, **day)).count();
    closed < 20 || closed * 20 <= days.len()
}

/// The usual close of the half days of a calendar, local time; `None` where it has none.
pub fn usual_half_day(calendar: CalendarName) -> Option<TimeOfDay> {
    match calendar.base() {
        CalendarName::Us | CalendarName::Cboe => Some(time(13, 0)),
        other => other.listed()?.half_day(),
    }
}

/// The close of a half day, local time; `None` on every other day, and of calendars that list no half days:
/// those of the United States' stock and options exchanges and of exchanges with a table do.
pub fn early_close(calendar: CalendarName, date: Date) -> Option<TimeOfDay> {
    let base = calendar.base();
    let half_day = match calendar {
        CalendarName::Changed(changes) if changes.early.contains(&date) => Some(None),
        _ => match base {
            CalendarName::Us | CalendarName::Cboe => us::half_day(date),
            _ => base.listed()?.days().half_day(date),
        },
    };
    let close = half_day?.or_else(|| usual_half_day(base))?;
    is_trading_day(calendar, date).then_some(close)
}

/// The hour on `date` at which an event of the exchange's regular day occurs: on a half day, an hour after
/// its close is as much earlier as that close is.
pub fn local_hour(calendar: CalendarName, date: Date, hour: f64) -> f64 {
    let closes = early_close(calendar, date).zip(calendar.session());
    match closes.map(|(early, session)| (early.hours(), session.close.hours())) {
        Some((early, close)) if hour > early => hour - (close - early),
        _ => hour,
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
    } else if calendar.base() == CalendarName::Sse {
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
