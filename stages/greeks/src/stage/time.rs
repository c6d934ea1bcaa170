//! Time to maturity.

use datasets::Date;
use datasets::calendar::{CalendarName, closes_early, expiry_of};
use datasets::contract::{Contracts, Expires, Origin};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::{ConfigProblem, StageError};
use std::fmt::Display;

/// The day count of the time to maturity: calendar days over 365 (day count actual/365 fixed). On the day of expiry itself the hours left count, so that a
/// contract settled after the snapshot still has a little time, and one settled before it has none. A contract whose expiry is no trading day
/// (monthly options were listed to the Saturday until 2015) settles on the trading day before (in Shanghai after); on days when the exchange closes
/// three hours early, the afternoon's times are three hours earlier.
///
/// Calendar, settlement times and AM-settled classes are those of the chain's contracts. A key that is set and contradicts them is an error; where
/// the chain states none, or only assumes them, the keys hold, and by default the calendar `us`, 16:00, and 9:30 for SPX.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TimeConfig {
    /// Count the hours between the time of the snapshot and the time of settlement on every day, not on the day of expiry alone.
    pub hours: bool,
    /// The time of the snapshot, in hours after midnight, local time of the exchange; null for a quarter of an hour before the settlement of
    /// PM-settled contracts.
    pub snapshot_hour: Option<f64>,
    /// The time of settlement on the day of expiry, in hours after midnight; null for that of the chain's contracts.
    pub settlement_hour: Option<f64>,
    /// The time of settlement of AM-settled contracts, in hours after midnight; null for that of the chain's contracts.
    pub morning_settlement_hour: Option<f64>,
    /// The option roots that are AM-settled; null for those of the chain's contracts.
    pub morning_roots: Option<Vec<String>>,
    /// The exchange's calendar: `us`, `cboe`, `cme`, `eurex`, `sse`, `nse`, `hkex`, `always`, `weekends` or `none`; null for that of the chain's
    /// contracts.
    pub calendar: Option<CalendarName>,
}

/// The AM-settled roots of chains that state no contracts.
pub(super) const MORNING: [&str; 1] = ["SPX"];
const SETTLEMENT: f64 = 16.0;
const MORNING_SETTLEMENT: f64 = 9.5;
/// The time from the snapshot to the settlement of PM-settled contracts.
const BEFORE_SETTLEMENT: f64 = 0.25;

/// A key of `time:` that contradicts the chain.
fn contradiction(
    key: &str,
    set: impl Display,
    class: &str,
    term: &str,
    stated: impl Display,
    origin: Origin,
) -> StageError {
    StageError::new(format!(
        "`time: {{ {key}: {set} }}` contradicts the chain: of the contracts of {class}, {term} is {stated} ({origin})"
    ))
    .hint(format!(
        "leave `{key}` out; if the chain is wrong, state `contract: {{ {term}: … }}` in the stage that reads it"
    ))
}

/// Returns whether two calendars have the same days.
fn same_days(a: CalendarName, b: CalendarName) -> bool {
    let us = |calendar| matches!(calendar, CalendarName::Us | CalendarName::Cboe);
    a == b || us(a) && us(b)
}

impl TimeConfig {
    /// Checks the hours.
    pub(super) fn check(&self) -> Result<(), ConfigProblem> {
        for (name, hour) in [
            ("snapshot_hour", self.snapshot_hour),
            ("settlement_hour", self.settlement_hour),
            ("morning_settlement_hour", self.morning_settlement_hour),
        ] {
            if let Some(hour) = hour
                && !(0.0..=24.0).contains(&hour)
            {
                return Err(
                    ConfigProblem::new(format!("time.{name}"), format!("{hour} is not an hour of the day"))
                        .hint("give hours after midnight from 0 to 24, such as 15.75 for 15:45"),
                );
            }
        }
        Ok(())
    }

    /// The day count of the contracts of a chain: what is not set is theirs.
    ///
    /// # Errors
    /// A key that contradicts the contracts, and contracts of several calendars or settlement times.
    pub(super) fn of_chain(&self, contracts: &Contracts) -> Result<Self, StageError> {
        let mut time = self.clone();
        let mut morning = Vec::new();
        for (root, facts) in contracts.iter() {
            let origin = |term: &str| facts.origin.get(term).copied().unwrap_or(Origin::Assumed);
            let is_assumed = |term: &str| origin(term) == Origin::Assumed;
            if let Some(calendar) = facts.terms.calendar {
                match (self.calendar, time.calendar) {
                    (Some(set), _) if !same_days(set, calendar) && !is_assumed("calendar") => {
                        return Err(contradiction(
                            "calendar",
                            set,
                            root,
                            "calendar",
                            calendar,
                            origin("calendar"),
                        ));
                    }
                    (None, Some(other)) if !same_days(other, calendar) => {
                        return Err(StageError::new(format!(
                            "the chain's contracts have the calendars {other} and {calendar}"
                        ))
                        .hint("read them in two stages"));
                    }
                    (None, None) => time.calendar = Some(calendar),
                    _ => {}
                }
            }
            let is_morning = facts.terms.expires == Some(Expires::Am);
            if is_morning {
                morning.push(root.to_owned());
            }
            if let Some(set) = &self.morning_roots
                && set.iter().any(|set| set == root) != is_morning
                && !is_assumed("expires")
            {
                let expires = if is_morning { Expires::Am } else { Expires::Pm };
                return Err(contradiction(
                    "morning_roots",
                    format!("[{}]", set.join(", ")),
                    root,
                    "expires",
                    expires,
                    origin("expires"),
                ));
            }
            let Some(at) = facts.terms.settlement_time else {
                continue;
            };
            let (key, set, hour) = if is_morning {
                (
                    "morning_settlement_hour",
                    self.morning_settlement_hour,
                    &mut time.morning_settlement_hour,
                )
            } else {
                ("settlement_hour", self.settlement_hour, &mut time.settlement_hour)
            };
            match (set, *hour) {
                (Some(set), _) if set != at.hours() && !is_assumed("settlement_time") => {
                    let origin = origin("settlement_time");
                    return Err(contradiction(key, set, root, "settlement_time", at, origin));
                }
                (None, Some(other)) if other != at.hours() => {
                    return Err(StageError::new(format!(
                        "the chain's contracts settle at several times of a day: {other} and {} hours after midnight",
                        at.hours()
                    ))
                    .hint("read them in two stages"));
                }
                (None, None) => *hour = Some(at.hours()),
                _ => {}
            }
        }
        if time.morning_roots.is_none() && !contracts.classes.is_empty() {
            time.morning_roots = Some(morning);
        }
        Ok(time)
    }

    /// Years from a snapshot on `date` to the settlement on `expiry`; 0 when that is over.
    pub fn years(&self, date: Date, expiry: Date, root: &str) -> f64 {
        let calendar = self.calendar.unwrap_or(CalendarName::Us);
        let expiry = expiry_of(calendar, expiry);
        let days = expiry.0 - date.0;
        let mut time = f64::from(days);
        if self.hours || days == 0 {
            let close = self.settlement_hour.unwrap_or(SETTLEMENT);
            let settlement = if self.is_morning(root) {
                self.morning_settlement_hour.unwrap_or(MORNING_SETTLEMENT)
            } else {
                close
            };
            let snapshot = self.snapshot_hour.unwrap_or(close - BEFORE_SETTLEMENT);
            time += (hour(calendar, expiry, settlement) - hour(calendar, date, snapshot)) / 24.0;
        }
        (time / 365.0).max(0.0)
    }

    /// Returns whether a class is AM-settled.
    fn is_morning(&self, root: &str) -> bool {
        match &self.morning_roots {
            Some(roots) => roots.iter().any(|morning| morning == root),
            None => MORNING.contains(&root),
        }
    }
}

/// An hour as it is on a date.
fn hour(calendar: CalendarName, date: Date, hour: f64) -> f64 {
    if hour > 13.0 && closes_early(calendar, date) {
        hour - 3.0
    } else {
        hour
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::contract::{Facts, specification};

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
            calendar: Some(CalendarName::None),
            ..time.clone()
        };
        assert_eq!(none.years(date("2019-04-15"), date("2019-04-19"), "SPXW"), 4.0 / 365.0);
        // Christmas Eve: snapshot and settlement are both three hours early.
        let eve = date("2019-12-24");
        assert_eq!(time.years(eve, eve, "SPXW"), 0.25 / 24.0 / 365.0);
        let exact = TimeConfig { hours: true, ..time };
        assert_eq!(exact.years(eve.plus(-1), eve, "SPXW"), (1.0 - 2.75 / 24.0) / 365.0);
    }

    fn chain_of(symbol: &str, roots: &[&str], calendar: CalendarName) -> Contracts {
        let mut contracts = Contracts::default();
        for root in roots {
            let mut facts = Facts {
                symbol: symbol.to_owned(),
                ..Facts::default()
            };
            facts.complete(&specification(symbol, root, Some(calendar)), Origin::Specification);
            contracts.insert(root, facts);
        }
        contracts
    }

    #[test]
    fn a_christmas_in_new_york_does_not_move_an_expiry_in_shanghai() {
        let date = |text: &str| text.parse::<Date>().unwrap_or_default();
        let sse = chain_of("510050", &["510050"], CalendarName::Sse);
        let time = TimeConfig::default().of_chain(&sse).unwrap();
        // The fourth Wednesday of December 2019.
        let expiry = date("2019-12-25");
        assert_eq!(time.years(date("2019-12-24"), expiry, "510050"), 1.0 / 365.0);
        assert_eq!(time.years(expiry, expiry, "510050"), 0.25 / 24.0 / 365.0);
        // What it was by the calendar of the United States.
        assert_eq!(
            TimeConfig::default().years(date("2019-12-24"), expiry, "510050"),
            0.25 / 24.0 / 365.0
        );
    }

    #[test]
    fn classes_settle_when_their_contracts_say() {
        let time = TimeConfig::default()
            .of_chain(&chain_of("RUT", &["RUT", "RUTW"], CalendarName::Us))
            .unwrap();
        let day: Date = "2019-06-21".parse().unwrap_or_default();
        assert_eq!(time.years(day, day, "RUT"), 0.0);
        assert_eq!(time.years(day, day, "RUTW"), 0.25 / 24.0 / 365.0);
        assert_eq!(time.morning_roots, Some(vec!["RUT".to_owned()]));
    }

    #[test]
    fn a_key_that_contradicts_the_contracts_is_refused_with_both_values() {
        let sse = chain_of("510050", &["510050"], CalendarName::Sse);
        let us = TimeConfig {
            calendar: Some(CalendarName::Us),
            ..TimeConfig::default()
        };
        assert_eq!(
            us.of_chain(&sse).unwrap_err().message,
            "`time: { calendar: us }` contradicts the chain: of the contracts of 510050, calendar is sse (specification)"
        );
        let spx = chain_of("SPX", &["SPX", "SPXW"], CalendarName::Us);
        let none = TimeConfig {
            morning_roots: Some(Vec::new()),
            ..TimeConfig::default()
        };
        assert!(none.of_chain(&spx).unwrap_err().message.contains("expires is am"));
        let late = TimeConfig {
            settlement_hour: Some(16.25),
            ..TimeConfig::default()
        };
        assert!(late.of_chain(&spx).unwrap_err().message.contains("16:00"));
        // Cboe's days are those of the stock exchanges; and a chain without facts takes what is set.
        let cboe = TimeConfig {
            calendar: Some(CalendarName::Cboe),
            ..TimeConfig::default()
        };
        assert!(cboe.of_chain(&spx).is_ok());
        assert_eq!(us.of_chain(&Contracts::default()).unwrap(), us);
    }
}
