//! Counts days without data on which a calendar expects some.

use datasets::Date;
use datasets::calendar::is_trading_day;
use datasets::layout::CalendarName;
use datasets::quality::{Example, HOLE, HOLE_OF_WEEKDAYS, Tally};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The state of the search for missing days of a symbol, whose days are visited in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct MissingDays {
    /// The last day with data.
    last: Option<Date>,
    /// The expected days without data since the last expected day that had some.
    run: Option<Run>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Run {
    from: Date,
    to: Date,
    days: u64,
    /// True if the calendar knows the holidays on all these days.
    is_covered: bool,
}

impl MissingDays {
    /// Counts the missing days before `day`, the next day with data, and the longer runs of them. Where
    /// holidays are unknown, only runs longer than any holiday season are counted.
    pub(crate) fn next(&mut self, symbol: &str, calendar: CalendarName, day: Date, tally: &mut Tally) {
        if calendar.base() == CalendarName::None {
            return;
        }
        let after = self.last.map_or(day, |last| last.plus(1));
        self.last = Some(day);
        for expected in (after.0..=day.0).map(Date) {
            // Special weekend sessions are not days on which data is expected.
            if !is_trading_day(calendar, expected)
                || expected.is_weekend() && calendar.base() != CalendarName::Always
            {
                continue;
            }
            if expected == day {
                if let Some(run) = self.run.take() {
                    run.count(symbol, calendar, tally);
                }
                continue;
            }
            let is_covered = calendar.covers(expected);
            let run = self.run.get_or_insert(Run {
                from: expected,
                to: expected,
                days: 0,
                is_covered: true,
            });
            run.to = expected;
            run.days += 1;
            run.is_covered &= is_covered;
            if calendar.knows_holidays() && is_covered {
                tally.add("missing_day", expected, 1);
            }
        }
    }
}

impl Run {
    fn count(&self, symbol: &str, calendar: CalendarName, tally: &mut Tally) {
        let knows_holidays = calendar.knows_holidays() && self.is_covered;
        let hole = if knows_holidays { HOLE } else { HOLE_OF_WEEKDAYS };
        if self.days >= hole as u64 {
            tally.add_rows("hole", self.from, self.days, || Example {
                symbol: (!symbol.is_empty()).then(|| symbol.to_owned()),
                date: Some(self.from),
                note: Some(format!("{} trading days to {}", self.days, self.to)),
                ..Example::default()
            });
        }
    }
}

/// Counts the days that are missing between the first and the last of `days`.
pub(crate) fn count_missing_days(
    symbol: &str,
    calendar: CalendarName,
    days: &BTreeSet<Date>,
    tally: &mut Tally,
) {
    let mut missing = MissingDays::default();
    for day in days {
        missing.next(symbol, calendar, *day, tally);
    }
}

/// The remedy of [`beyond_calendar`].
pub(crate) const ADDS_DAYS: &str =
    "`calendar: { base: …, closed: [DATE, …] }` adds what the exchange has announced";

/// A warning if the data extends beyond the years that the calendar covers.
pub(crate) fn beyond_calendar(calendar: CalendarName, days: &BTreeSet<Date>) -> Option<String> {
    let beyond = days.iter().filter(|day| !calendar.covers(**day)).count();
    let (first, last) = calendar.range()?;
    (beyond > 0).then(|| {
        format!(
            "the calendar `{calendar}` covers {first} to {last}; the holidays of {beyond} days of the \
            data are not known"
        )
    })
}
