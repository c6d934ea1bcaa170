//! The calendar that data shows.

use super::{CalendarName, is_trading_day};
use crate::Date;
use std::collections::BTreeSet;

/// The calendar whose days are those of the data, where `assumed` lacks some of them: it has every day of the
/// data, and of its own days in the data's range at most half as many are missing as `assumed` has too few.
/// Of several, the one with the fewest missing days; `None` where none that covers half of the days explains
/// the data.
pub fn found(assumed: CalendarName, days: &BTreeSet<Date>) -> Option<CalendarName> {
    let (first, last) = (days.first()?.0, days.last()?.0);
    let foreign = days.iter().filter(|day| !is_trading_day(assumed, **day)).count();
    let missing = |calendar: CalendarName| {
        let range = (first..=last).map(Date);
        let lacks =
            |day: &Date| is_trading_day(calendar, *day) && calendar.covers(*day) && !days.contains(day);
        range.filter(lacks).count()
    };
    let candidates = CalendarName::all().filter(|calendar| *calendar != CalendarName::None);
    let fitting = candidates.filter(|calendar| {
        let covered = days.iter().filter(|day| calendar.covers(**day)).count();
        2 * covered >= days.len() && days.iter().all(|day| is_trading_day(*calendar, *day))
    });
    let best = fitting
        .map(|calendar| (missing(calendar), calendar))
        .min_by_key(|(missing, _)| *missing);
    best.filter(|(missing, _)| 2 * missing <= foreign)
        .map(|(_, calendar)| calendar)
}
