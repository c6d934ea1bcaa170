//! The market's own time. Variance and jumps accrue while the exchange is open, and a closed day adds a
//! little. Options are priced and paths simulated on the same clock, so that no day of the week is cheap.
//! Interest and dividends follow the calendar.

use super::limits::Invalid;
use super::parameters::Parameters;
use datasets::calendar::{is_trading_day, next_trading_day};
use datasets::layout::CalendarName;
use datasets::{Date, DateRange};

/// The exchange whose calendar simulated markets follow.
pub(super) const EXCHANGE: CalendarName = CalendarName::Us;

/// The first `count` trading days from `start` on.
pub(super) fn trading_days(start: Date, count: u32) -> Vec<Date> {
    let next = |date: &Date| Some(next_trading_day(EXCHANGE, *date));
    let days = std::iter::successors(next(&start.plus(-1)), next);
    days.take(count as usize).collect()
}

/// The days of a market, and the time between any two of them in years of the market's clock.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    days: Vec<Date>,
    first: Date,
    /// The years from the first day to each calendar day after it.
    years: Vec<f64>,
    unit: f64,
}

impl Clock {
    /// The clock of a market with `parameters`, extending `ahead` calendar days beyond the last trading day.
    pub(crate) fn new(parameters: &Parameters, ahead: i32) -> Self {
        let days = trading_days(parameters.start, parameters.days);
        let first = days.first().copied().unwrap_or(parameters.start);
        let last = days.last().copied().unwrap_or(first).plus(ahead);
        let unit = unit(parameters.time.closed_day);
        // Counted rather than summed, so that a year is the same number at any position in the sequence.
        let (mut open, mut closed) = (0_u32, 0_u32);
        let mut years = vec![0.0];
        for day in first.0 + 1..=last.0 {
            if is_trading_day(EXCHANGE, Date(day)) {
                open += 1;
            } else {
                closed += 1;
            }
            years.push(f64::from(open) * unit + f64::from(closed) * (parameters.time.closed_day * unit));
        }
        Self {
            days,
            first,
            years,
            unit,
        }
    }

    /// The trading days.
    pub(crate) fn days(&self) -> &[Date] {
        &self.days
    }

    /// The length of a trading day in years.
    pub(crate) fn unit(&self) -> f64 {
        self.unit
    }

    /// The years between the closes of two days.
    pub(crate) fn years(&self, range: DateRange) -> f64 {
        let at = |date: Date| {
            let i = (date.0 - self.first.0).max(0) as usize;
            self.years[i.min(self.years.len() - 1)]
        };
        at(range.to) - at(range.from)
    }
}

/// The length of a trading day in years: a year has 252 trading days and 113 closed days.
fn unit(closed_day: f64) -> f64 {
    1.0 / (252.0 + 113.0 * closed_day)
}

impl Parameters {
    /// The parameters of the market that ends at `until`, expressed in the number of days; the days up to
    /// then are the same.
    ///
    /// # Errors
    /// When the market begins after `until`.
    pub fn bounded(&self) -> Result<Self, Invalid> {
        let Some(until) = self.until else {
            return Ok(self.clone());
        };
        let dates = (self.start.0..=until.0).map(Date);
        let days = dates.filter(|date| is_trading_day(EXCHANGE, *date));
        let days = days.take(self.days as usize).count() as u32;
        if days == 0 {
            return Err(Invalid {
                field: "until",
                message: format!("{until} is before the first day"),
                hint: "let `start` be earlier".to_owned(),
            });
        }
        Ok(Self {
            days,
            until: None,
            ..self.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn years_by_trading_days() {
        let parameters = Parameters {
            days: 20,
            ..Parameters::default()
        };
        let clock = Clock::new(&parameters, 400);
        assert_eq!(clock.days().len(), 20);
        let year = DateRange {
            from: clock.days()[0],
            to: clock.days()[0].plus(365),
        };
        assert!((clock.years(year) - 1.0).abs() < 0.02);
        let week = |from: usize, to: usize| {
            clock.years(DateRange {
                from: clock.days()[from],
                to: clock.days()[to],
            })
        };
        assert!(week(0, 1) >= clock.unit() && week(0, 5) < 5.5 * clock.unit());
    }
}
