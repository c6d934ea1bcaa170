//! Time to maturity.

use datasets::calendar::{CalendarName, expiry_of, local_hour};
use datasets::contract::{Contracts, Expires, Origin, Terms};
use datasets::{Date, SnapshotTime, TimeZone};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::{ConfigProblem, PlanContext, StageError};
use std::fmt::Display;

/// The day count of the time to maturity: calendar days over 365 (day count actual/365 fixed). On the day of
/// expiry itself the hours left count, so that a contract settled after the snapshot still has a little time,
/// and one settled before it has none. A contract whose expiry is no trading day (monthly options were listed
/// to the Saturday until 2015) settles on the trading day before (in Shanghai after); on days when the
/// exchange closes three hours early, the afternoon's times are three hours earlier.
///
/// Calendar, settlement times and AM-settled classes are those of the chain's contracts. A key that is set
/// and contradicts them is an error; where the chain states none, or only assumes them, the keys hold, and by
/// default the calendar `us`, 16:00, and 9:30 for SPX.
///
/// In a chain with several snapshots a day, the hours count on every day, as with `hours`, from the
/// snapshot's own local time in the time zone of the contracts (or of their calendar); `snapshot_hour` is an
/// error there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TimeConfig {
    /// Count the hours between the time of the snapshot and the time of settlement on every day, not on the
    /// day of expiry alone.
    pub hours: bool,
    /// The time of the snapshot, in hours after midnight, local time of the exchange; null for a quarter of
    /// an hour before the settlement of PM-settled contracts.
    pub snapshot_hour: Option<f64>,
    /// The time of settlement on the day of expiry, in hours after midnight; null for that of the chain's
    /// contracts.
    pub settlement_hour: Option<f64>,
    /// The time of settlement of AM-settled contracts, in hours after midnight; null for that of the chain's
    /// contracts.
    pub morning_settlement_hour: Option<f64>,
    /// The option roots that are AM-settled; null for those of the chain's contracts.
    pub morning_roots: Option<Vec<String>>,
    /// The exchange's calendar: `us`, `cboe`, `cme`, `eurex`, `sse`, `nse`, `hkex`, `always`, `weekends` or
    /// `none`; null for that of the chain's contracts.
    pub calendar: Option<CalendarName>,
    /// The time zone in which snapshots have their hours, of a chain with several a day; no key of the
    /// configuration.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub(super) zone: Option<TimeZone>,
}

/// The AM-settled roots of chains that state no contracts.
pub(super) const MORNING: [&str; 1] = ["SPX"];
const SETTLEMENT: f64 = 16.0;
const MORNING_SETTLEMENT: f64 = 9.5;
/// The default time from the snapshot to the settlement of PM-settled contracts, in hours.
const BEFORE_SETTLEMENT: f64 = 0.25;

/// Returns whether two calendars have the same days.
fn same_days(a: CalendarName, b: CalendarName) -> bool {
    let us = |calendar: CalendarName| matches!(calendar.base(), CalendarName::Us | CalendarName::Cboe);
    a == b || us(a) && us(b)
}

impl TimeConfig {
    /// Checks that the hours are within a day.
    pub(super) fn check(&self) -> Result<(), ConfigProblem> {
        for (name, hour) in [
            ("snapshot_hour", self.snapshot_hour),
            ("settlement_hour", self.settlement_hour),
            ("morning_settlement_hour", self.morning_settlement_hour),
        ] {
            if let Some(hour) = hour
                && !(0.0..=24.0).contains(&hour)
            {
                return Err(ConfigProblem::new(
                    format!("time.{name}"),
                    format!("{hour} is not an hour of the day"),
                )
                .hint("give hours after midnight from 0 to 24, such as 15.75 for 15:45"));
            }
        }
        Ok(())
    }

    /// Refuses, at plan time, a calendar other than the one configured for the chain's contracts.
    pub(super) fn check_chain(&self, plan: &PlanContext) -> Result<(), ConfigProblem> {
        let chain = plan.inputs.get("chain").and_then(|list| list.first());
        match (self.calendar, chain.and_then(|chain| chain.calendar)) {
            (Some(set), Some(calendar)) if !same_days(set, calendar) => Err(ConfigProblem::new(
                "time.calendar",
                format!(
                    "`time: {{ calendar: {set} }}` contradicts the chain, whose contracts have the calendar \
                    {calendar} ({})",
                    Origin::Config
                ),
            )
            .hint("leave `calendar` out, or correct `contract` in the stage that reads the chain")),
            _ => Ok(()),
        }
    }

    /// The day count for the contracts of a chain, which may have several snapshots a day; settings that are
    /// not given are taken from the contracts.
    ///
    /// # Errors
    /// When a setting contradicts the contracts, or the contracts have several calendars or settlement times.
    /// With several snapshots a day also when the snapshot's hour is set, or the contracts have several time
    /// zones or an unknown one.
    pub(super) fn of_chain(&self, contracts: &Contracts, is_intraday: bool) -> Result<Self, StageError> {
        let mut time = self.clone();
        let mut morning = Vec::new();
        for (root, facts) in contracts.iter() {
            let terms = &facts.terms;
            // A term that is only assumed may be contradicted.
            let refuse = |key: &str, set: &dyn Display, term: &str, stated: &dyn Display| {
                let origin = facts.origin.get(term).copied().unwrap_or(Origin::Assumed);
                let message = format!(
                    "`time: {{ {key}: {set} }}` contradicts the chain: of the contracts of {root}, {term} is \
                    {stated} ({origin})"
                );
                let hint = format!(
                    "leave `{key}` out; if the chain is wrong, state `contract: {{ {term}: … }}` in the \
                    stage that reads it"
                );
                StageError::new(message).hint(hint).when(origin != Origin::Assumed)
            };
            if let Some(calendar) = terms.calendar {
                match (self.calendar, time.calendar) {
                    (Some(set), _) if !same_days(set, calendar) => {
                        refuse("calendar", &set, "calendar", &calendar)?;
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
            let is_morning = terms.expires == Some(Expires::Am);
            morning.extend(is_morning.then(|| root.to_owned()));
            if let Some(set) = &self.morning_roots
                && set.iter().any(|set| set == root) != is_morning
            {
                let expires = if is_morning { Expires::Am } else { Expires::Pm };
                let set = format!("[{}]", set.join(", "));
                refuse("morning_roots", &set, "expires", &expires)?;
            }
            let Some(at) = terms.settlement_time else {
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
                (Some(set), _) if set != at.hours() => refuse(key, &set, "settlement_time", &at)?,
                (None, Some(other)) if other != at.hours() => {
                    return Err(StageError::new(format!(
                        "the chain's contracts settle at several times of a day: {other} and {} hours after \
                        midnight",
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
        if is_intraday {
            time.zone = Some(self.zone_of(contracts, time.calendar)?);
        }
        Ok(time)
    }

    /// The time zone of contracts of the exchange with `calendar`.
    fn zone_of(&self, contracts: &Contracts, calendar: Option<CalendarName>) -> Result<TimeZone, StageError> {
        if let Some(hour) = self.snapshot_hour {
            return Err(StageError::new(format!(
                "`time: {{ snapshot_hour: {hour} }}` contradicts the chain, which has several snapshots a \
                day, each with its own time"
            ))
            .hint("leave `snapshot_hour` out"));
        }
        let calendar_terms = Terms {
            calendar,
            ..Terms::default()
        };
        let mut zones = contracts
            .iter()
            .map(|(_, facts)| facts.terms.or(&calendar_terms).zone());
        let first = zones.next().unwrap_or_else(|| calendar_terms.zone());
        StageError::new("the chain's contracts have several time zones")
            .hint("read them in two stages")
            .when(zones.any(|zone| zone != first))?;
        first.ok_or_else(|| {
            StageError::new(
                "the chain has several snapshots a day, and the time zone of its contracts is not known",
            )
            .hint("state `contract: { time_zone: America/New_York }`, or its own, in the stage that reads it")
        })
    }

    /// The years from the snapshot `at` to the settlement on `expiry`; 0 once that has passed.
    pub fn years(&self, at: SnapshotTime, expiry: Date, root: &str) -> f64 {
        let calendar = self.calendar.unwrap_or(CalendarName::Us);
        let expiry = expiry_of(calendar, expiry);
        let days = expiry.0 - at.date.0;
        let mut time = f64::from(days);
        let instant = at.instant.zip(self.zone);
        if self.hours || days == 0 || instant.is_some() {
            let close = self.settlement_hour.unwrap_or(SETTLEMENT);
            let settlement = if self.is_morning(root) {
                self.morning_settlement_hour.unwrap_or(MORNING_SETTLEMENT)
            } else {
                close
            };
            let snapshot = match instant {
                Some((instant, zone)) => zone.hours(instant, at.date),
                None => local_hour(
                    calendar,
                    at.date,
                    self.snapshot_hour.unwrap_or(close - BEFORE_SETTLEMENT),
                ),
            };
            time += (local_hour(calendar, expiry, settlement) - snapshot) / 24.0;
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

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::contract::{Facts, specification};

    #[test]
    fn counts_days_and_the_last_hours() {
        let time = TimeConfig::default();
        let day: Date = "2019-04-15".parse().unwrap_or_default();
        let at = SnapshotTime::of_day(day);
        assert_eq!(time.years(at, day.plus(73), "SPXW"), 0.2);
        assert_eq!(time.years(at, day, "SPXW"), 0.25 / 24.0 / 365.0);
        assert_eq!(time.years(at, day, "SPX"), 0.0);
        assert_eq!(time.years(at, day.plus(-1), "SPXW"), 0.0);
        let exact = TimeConfig { hours: true, ..time };
        assert_eq!(exact.years(at, day.plus(1), "SPX"), (1.0 - 6.25 / 24.0) / 365.0);
    }

    #[test]
    fn keeps_the_exchange_s_days_and_hours() {
        let time = TimeConfig::default();
        let date = |text: &str| text.parse::<Date>().unwrap_or_default();
        // A Saturday expiry of former monthly options, and Good Friday.
        assert_eq!(
            time.years(SnapshotTime::of_day(date("2012-03-16")), date("2012-03-17"), "SPXW"),
            0.25 / 24.0 / 365.0
        );
        assert_eq!(
            time.years(SnapshotTime::of_day(date("2019-04-15")), date("2019-04-19"), "SPXW"),
            3.0 / 365.0
        );
        let none = TimeConfig {
            calendar: Some(CalendarName::None),
            ..time.clone()
        };
        assert_eq!(
            none.years(SnapshotTime::of_day(date("2019-04-15")), date("2019-04-19"), "SPXW"),
            4.0 / 365.0
        );
        // Christmas Eve: snapshot and settlement are both three hours early.
        let eve = date("2019-12-24");
        assert_eq!(time.years(SnapshotTime::of_day(eve), eve, "SPXW"), 0.25 / 24.0 / 365.0);
        let exact = TimeConfig { hours: true, ..time };
        assert_eq!(
            exact.years(SnapshotTime::of_day(eve.plus(-1)), eve, "SPXW"),
            (1.0 - 2.75 / 24.0) / 365.0
        );
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
        let time = TimeConfig::default().of_chain(&sse, false).unwrap();
        // The fourth Wednesday of December 2019.
        let expiry = date("2019-12-25");
        assert_eq!(
            time.years(SnapshotTime::of_day(date("2019-12-24")), expiry, "510050"),
            1.0 / 365.0
        );
        assert_eq!(
            time.years(SnapshotTime::of_day(expiry), expiry, "510050"),
            0.25 / 24.0 / 365.0
        );
        // The result by the United States calendar.
        assert_eq!(
            TimeConfig::default().years(SnapshotTime::of_day(date("2019-12-24")), expiry, "510050"),
            0.25 / 24.0 / 365.0
        );
    }

    #[test]
    fn classes_settle_when_their_contracts_say() {
        let time = TimeConfig::default()
            .of_chain(&chain_of("RUT", &["RUT", "RUTW"], CalendarName::Us), false)
            .unwrap();
        let day: Date = "2019-06-21".parse().unwrap_or_default();
        let at = SnapshotTime::of_day(day);
        assert_eq!(time.years(at, day, "RUT"), 0.0);
        assert_eq!(time.years(at, day, "RUTW"), 0.25 / 24.0 / 365.0);
        assert_eq!(time.morning_roots, Some(vec!["RUT".to_owned()]));
    }

    #[test]
    fn an_instant_has_its_own_hour() {
        let date = |text: &str| text.parse::<Date>().unwrap_or_default();
        let at = |day: &str, zone: &str, hours: f64| SnapshotTime {
            date: date(day),
            instant: TimeZone::named(zone).map(|zone| zone.instant(date(day), hours)),
        };
        let new_york = |day: &str, hours: f64| at(day, "America/New_York", hours);
        let us = TimeConfig::default().of_chain(&Contracts::default(), true).unwrap();
        // The same as for a chain with one snapshot a day at that hour, in summer and winter.
        for day in ["2019-01-15", "2019-07-15", "2019-12-24"] {
            let daily = TimeConfig {
                hours: true,
                snapshot_hour: Some(10.0),
                ..TimeConfig::default()
            };
            for (ahead, root) in [(0, "SPXW"), (1, "SPX"), (40, "SPXW")] {
                let expiry = date(day).plus(ahead);
                let expected = daily.years(SnapshotTime::of_day(date(day)), expiry, root);
                assert_eq!(us.years(new_york(day, 10.0), expiry, root), expected, "{day} {ahead}");
            }
        }
        let expiry = date("2019-07-19");
        assert_eq!(
            us.years(new_york("2019-07-19", 15.75), expiry, "SPXW"),
            0.25 / 24.0 / 365.0
        );
        assert_eq!(us.years(new_york("2019-07-19", 16.25), expiry, "SPXW"), 0.0);
        // On the shortened afternoon of Christmas Eve, the hours that were left.
        let eve = date("2019-12-24");
        assert_eq!(us.years(new_york("2019-12-24", 12.5), eve, "SPXW"), 0.5 / 24.0 / 365.0);
        let sse = chain_of("510050", &["510050"], CalendarName::Sse);
        let sse = TimeConfig::default().of_chain(&sse, true).unwrap();
        let morning = at("2019-12-25", "Asia/Shanghai", 10.0);
        assert_eq!(sse.years(morning, date("2019-12-25"), "510050"), 5.0 / 24.0 / 365.0);
    }

    #[test]
    fn several_snapshots_a_day_need_a_zone_and_no_hour() {
        let hour = TimeConfig {
            snapshot_hour: Some(15.75),
            ..TimeConfig::default()
        };
        assert!(hour.of_chain(&Contracts::default(), false).is_ok());
        let err = hour.of_chain(&Contracts::default(), true).unwrap_err();
        assert!(err.message.contains("snapshot_hour: 15.75"), "{err}");
        let nowhere = TimeConfig {
            calendar: Some(CalendarName::None),
            ..TimeConfig::default()
        };
        let err = nowhere.of_chain(&Contracts::default(), true).unwrap_err();
        assert!(err.message.contains("time zone"), "{err}");
        let mut two = chain_of("SPX", &["SPX"], CalendarName::Us);
        two.classes.extend(chain_of("SPX", &["SPXW"], CalendarName::Us).classes);
        if let Some(facts) = two.classes.get_mut("SPXW") {
            facts.terms.time_zone = Some("America/Chicago".to_owned());
        }
        let err = TimeConfig::default().of_chain(&two, true).unwrap_err();
        assert!(err.message.contains("several time zones"), "{err}");
    }

    #[test]
    fn a_key_that_contradicts_the_contracts_is_refused_with_both_values() {
        let sse = chain_of("510050", &["510050"], CalendarName::Sse);
        let us = TimeConfig {
            calendar: Some(CalendarName::Us),
            ..TimeConfig::default()
        };
        assert_eq!(
            us.of_chain(&sse, false).unwrap_err().message,
            "`time: { calendar: us }` contradicts the chain: of the contracts of 510050, calendar is sse \
            (specification)"
        );
        let spx = chain_of("SPX", &["SPX", "SPXW"], CalendarName::Us);
        let none = TimeConfig {
            morning_roots: Some(Vec::new()),
            ..TimeConfig::default()
        };
        assert!(
            none.of_chain(&spx, false)
                .unwrap_err()
                .message
                .contains("expires is am")
        );
        let late = TimeConfig {
            settlement_hour: Some(16.25),
            ..TimeConfig::default()
        };
        assert!(late.of_chain(&spx, false).unwrap_err().message.contains("16:00"));
        // Cboe's trading days are those of the stock exchanges; a chain without facts uses what is set.
        let cboe = TimeConfig {
            calendar: Some(CalendarName::Cboe),
            ..TimeConfig::default()
        };
        assert!(cboe.of_chain(&spx, false).is_ok());
        assert_eq!(us.of_chain(&Contracts::default(), false).unwrap(), us);
    }
}
