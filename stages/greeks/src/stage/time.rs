//! Time to maturity.

use datasets::Date;
use datasets::calendar::{closes_early, expiry_of};
use datasets::layout::CalendarName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::ConfigProblem;

/// The day count of the time to maturity: calendar days over 365 (day count actual/365 fixed). On the day of expiry itself the hours left count, so that a
/// contract settled after the snapshot still has a little time, and one settled before it has none. A contract whose expiry is no trading day
/// (monthly options were listed to the Saturday until 2015) settles on the trading day before; on days when the exchange closes three hours early,
/// the afternoon's times are three hours earlier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TimeConfig {
    /// Count the hours between the time of the snapshot and the time of settlement on every day, not on the day of expiry alone.
    pub hours: bool,
    /// The time of the snapshot, in hours after midnight, local time of the exchange.
    pub snapshot_hour: f64,
    /// The time of settlement on the day of expiry, in hours after midnight.
    pub settlement_hour: f64,
    /// The time of settlement of AM-settled contracts, in hours after midnight.
    pub morning_settlement_hour: f64,
    /// The option roots that are AM-settled.
    pub morning_roots: Vec<String>,
    /// The exchange's calendar: `us`, `weekends` or `none`.
    pub calendar: CalendarName,
}

impl Default for TimeConfig {
    fn default() -> Self {
        Self {
            hours: false,
            snapshot_hour: 15.75,
            settlement_hour: 16.0,
            morning_settlement_hour: 9.5,
            morning_roots: vec!["SPX".to_owned()],
            calendar: CalendarName::Us,
        }
    }
}

impl TimeConfig {
    /// Checks the hours.
    pub(super) fn check(&self) -> Result<(), ConfigProblem> {
        for (name, hour) in [
            ("snapshot_hour", self.snapshot_hour),
            ("settlement_hour", self.settlement_hour),
            ("morning_settlement_hour", self.morning_settlement_hour),
        ] {
            if !(0.0..=24.0).contains(&hour) {
                return Err(
                    ConfigProblem::new(format!("time.{name}"), format!("{hour} is not an hour of the day"))
                        .hint("give hours after midnight from 0 to 24, such as 15.75 for 15:45"),
                );
            }
        }
        Ok(())
    }

    /// Years from a snapshot on `date` to the settlement on `expiry`; 0 when that is over.
    pub fn years(&self, date: Date, expiry: Date, root: &str) -> f64 {
        let expiry = expiry_of(self.calendar, expiry);
        let days = expiry.0 - date.0;
        let mut time = f64::from(days);
        if self.hours || days == 0 {
            let morning = self.morning_roots.iter().any(|morning| morning == root);
            let settlement = if morning {
                self.morning_settlement_hour
            } else {
                self.settlement_hour
            };
            time += (self.hour(expiry, settlement) - self.hour(date, self.snapshot_hour)) / 24.0;
        }
        (time / 365.0).max(0.0)
    }

    /// An hour as it is on a date.
    fn hour(&self, date: Date, hour: f64) -> f64 {
        if hour > 13.0 && closes_early(self.calendar, date) {
            hour - 3.0
        } else {
            hour
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_days_and_the_last_hours() {
        let time = TimeConfig::default();
        let day: Date = "2019-04-15".parse().unwrap_or_default();
        assert_eq!(time.years(day, day.plus(73), "SPXW"), 0.2);
        assert_eq!(time.years(day, day, "SPXW"), 0.25 / 24.0 / 365.0);
        assert_eq!(time.years(day, day, "SPX"), 0.0);
        assert_eq!(time.years(day, day.plus(-1), "SPXW"), 0.0);
        let exact = TimeConfig { hours: true, ..time };
        assert_eq!(exact.years(day, day.plus(1), "SPX"), (1.0 - 6.25 / 24.0) / 365.0);
    }

    #[test]
    fn keeps_the_exchange_s_days_and_hours() {
        let time = TimeConfig::default();
        let date = |text: &str| text.parse::<Date>().unwrap_or_default();
        // A Saturday of the old monthly options, and Good Friday.
        assert_eq!(
            time.years(date("2012-03-16"), date("2012-03-17"), "SPXW"),
            0.25 / 24.0 / 365.0
        );
        assert_eq!(time.years(date("2019-04-15"), date("2019-04-19"), "SPXW"), 3.0 / 365.0);
        let none = TimeConfig {
            calendar: CalendarName::None,
            ..time.clone()
        };
        assert_eq!(none.years(date("2019-04-15"), date("2019-04-19"), "SPXW"), 4.0 / 365.0);
        // Christmas Eve: snapshot and settlement are both three hours early.
        let eve = date("2019-12-24");
        assert_eq!(time.years(eve, eve, "SPXW"), 0.25 / 24.0 / 365.0);
        let exact = TimeConfig { hours: true, ..time };
        assert_eq!(exact.years(eve.plus(-1), eve, "SPXW"), (1.0 - 2.75 / 24.0) / 365.0);
    }
}
