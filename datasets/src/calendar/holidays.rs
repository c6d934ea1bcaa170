//! Tables of holidays, for exchanges that close by announcement and not by rule.

use crate::Date;

/// The weekdays without trading, as month and day, by year; the years in order.
pub(super) struct Holidays(pub &'static [(i32, &'static [(u32, u32)])]);

impl Holidays {
    /// The first and the last year.
    pub const fn years(&self) -> (i32, i32) {
        (self.0[0].0, self.0[self.0.len() - 1].0)
    }

    /// Returns whether the exchange is closed on a weekday; false in years that the table lacks.
    pub fn contains(&self, date: Date) -> bool {
        let (year, month, day) = date.ymd();
        let mut years = self.0.iter();
        years.any(|(of, days)| *of == year && days.contains(&(month, day)))
    }
}

/// The number of trading days of a year.
#[cfg(test)]
pub(super) fn trading_days(calendar: super::CalendarName, year: i32) -> usize {
    let day = |month, day| Date::from_ymd(year, month, day).unwrap().0;
    let days = (day(1, 1)..=day(12, 31)).map(Date);
    days.filter(|day| super::is_trading_day(calendar, *day)).count()
}
