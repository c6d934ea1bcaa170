//! Settings that the stages of this family share.

use datasets::calendar::is_trading_day;
use datasets::layout::{CalendarName, nearest};
use datasets::quality::{Action, Rule, Tally};
use datasets::{Date, DateRange};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use stages_core::dataset::Period;
use stages_core::{ConfigProblem, StageError};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The action for invalid rows: `drop`, `keep` or `fail`; or by rule, `{ default: drop, crossed_quote: keep }`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OnBadRows {
    /// For rules that are not named.
    pub default: Action,
    /// By rule.
    pub rules: BTreeMap<String, Action>,
}

impl OnBadRows {
    /// The action for a rule. The default never fails on rules that only report.
    pub fn action(&self, rule: &Rule) -> Action {
        use datasets::quality::Remedy;
        match self.rules.get(rule.name) {
            Some(action) => *action,
            None if rule.remedy == Remedy::Note => Action::Keep,
            None => self.default,
        }
    }

    /// The action for the rule of that name.
    pub fn of(&self, rules: &[Rule], name: &str) -> Action {
        rules
            .iter()
            .find(|rule| rule.name == name)
            .map_or(self.default, |rule| self.action(rule))
    }

    /// Refuses the name of a rule that does not exist.
    ///
    /// # Errors
    /// The first such name.
    pub fn check(&self, rules: &[Rule]) -> Result<(), ConfigProblem> {
        for name in self.rules.keys() {
            if !rules.iter().any(|rule| rule.name == name) {
                let known: Vec<_> = rules.iter().map(|rule| rule.name).collect();
                return Err(
                    ConfigProblem::new(format!("on_bad_rows.{name}"), format!("there is no rule `{name}`"))
                        .hint(suggestion(name, &known)),
                );
            }
        }
        Ok(())
    }

    /// Fails where a rule is broken that may not be.
    ///
    /// # Errors
    /// Names the rule, how often it is broken and where first.
    pub fn enforce(&self, tally: &Tally) -> Result<(), StageError> {
        for (rule, rows, first) in tally.broken() {
            if self.action(rule) == Action::Fail {
                let unit = if rule.name == "missing_day" { "days" } else { "rows" };
                let first = first.map(|first| format!(", first on {first}")).unwrap_or_default();
                return Err(StageError::new(format!(
                    "{rows} {unit} break the rule `{}`{first}: {}",
                    rule.name, rule.about
                ))
                .hint(format!("`on_bad_rows: {{ {}: drop }}` lets them pass", rule.name)));
            }
        }
        Ok(())
    }
}

/// "did you mean", or all there is.
pub fn suggestion(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", known.join(", ")),
    }
}

impl Serialize for OnBadRows {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.rules.is_empty() {
            return self.default.serialize(serializer);
        }
        use serde::ser::SerializeMap as _;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("default", &self.default)?;
        for (rule, action) in &self.rules {
            map.serialize_entry(rule, action)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for OnBadRows {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = OnBadRows;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("`drop`, `keep`, `fail`, or a map from rules to these")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<OnBadRows, E> {
                Ok(OnBadRows {
                    default: Action::deserialize(de::value::StrDeserializer::new(text))?,
                    rules: BTreeMap::new(),
                })
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<OnBadRows, A::Error> {
                let mut rules: BTreeMap<String, Action> =
                    BTreeMap::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(OnBadRows {
                    default: rules.remove("default").unwrap_or_default(),
                    rules,
                })
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for OnBadRows {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "OnBadRows".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let action = generator.subschema_for::<Action>();
        schemars::json_schema!({
            "description": "drop, keep or fail; or by rule: { default: drop, crossed_quote: keep }.",
            "anyOf": [action.clone(), { "type": "object", "additionalProperties": action }]
        })
    }
}

/// Refuses a range of dates that ends before it begins.
///
/// # Errors
/// When it does.
pub fn check_dates(dates: Option<DateRange>) -> Result<(), ConfigProblem> {
    match dates {
        Some(dates) if dates.to < dates.from => Err(ConfigProblem::new(
            "dates",
            format!("{} is before {}", dates.to, dates.from),
        )
        .hint("both ends are included")),
        _ => Ok(()),
    }
}

/// The days on which data is expected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CalendarChoice {
    /// As the layout or the exchange's specification says; none where more than a twentieth of the days, and at least twenty, would be closed by
    /// it.
    #[default]
    Auto,
    /// The stock exchanges of the United States.
    #[serde(alias = "nyse")]
    Us,
    /// Cboe's options exchanges.
    Cboe,
    /// CME Group.
    Cme,
    /// Eurex.
    Eurex,
    /// The Shanghai Stock Exchange.
    Sse,
    /// The National Stock Exchange of India.
    Nse,
    /// Hong Kong Exchanges.
    Hkex,
    /// Open around the clock, every day.
    #[serde(alias = "24/7")]
    Always,
    /// Monday to Friday. Holidays are not known, so that missing days are not counted.
    Weekends,
    /// Every day.
    None,
}

impl CalendarChoice {
    /// The calendar that is named; `None` for `auto`.
    pub const fn name(self) -> Option<CalendarName> {
        Some(match self {
            Self::Auto => return None,
            Self::Us => CalendarName::Us,
            Self::Cboe => CalendarName::Cboe,
            Self::Cme => CalendarName::Cme,
            Self::Eurex => CalendarName::Eurex,
            Self::Sse => CalendarName::Sse,
            Self::Nse => CalendarName::Nse,
            Self::Hkex => CalendarName::Hkex,
            Self::Always => CalendarName::Always,
            Self::Weekends => CalendarName::Weekends,
            Self::None => CalendarName::None,
        })
    }

    /// The calendar for data of these days.
    pub fn resolve(self, of_layout: CalendarName, days: &BTreeSet<Date>) -> CalendarName {
        match self.name() {
            Some(name) => name,
            None if fits(of_layout, days) => of_layout,
            None => CalendarName::None,
        }
    }
}

/// Returns whether a calendar fits data of these days: not where more than a twentieth of them, and at least twenty, would be closed by it.
pub fn fits(calendar: CalendarName, days: &BTreeSet<Date>) -> bool {
    let closed = days.iter().filter(|day| !is_trading_day(calendar, **day)).count();
    closed < 20 || closed * 20 <= days.len()
}

/// Counts the days that are missing between the first and the last of `days`, where holidays are known.
pub fn count_missing_days(calendar: CalendarName, days: &BTreeSet<Date>, tally: &mut Tally) {
    let (true, Some(&first), Some(&last)) = (calendar.knows_holidays(), days.first(), days.last()) else {
        return;
    };
    for day in (first.0..=last.0).map(Date) {
        // Special sessions of weekends are no days on which data is expected.
        let is_expected = calendar.covers(day) && (!day.is_weekend() || calendar == CalendarName::Always);
        if is_expected && is_trading_day(calendar, day) && !days.contains(&day) {
            tally.add("missing_day", day, 1);
        }
    }
}

/// The period of partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PartitionChoice {
    /// By the first day: one with more than 5,000 rows makes daily partitions, otherwise they are monthly (chains) or
    /// yearly (bars and rates).
    #[default]
    Auto,
    /// A day each.
    Day,
    /// A calendar month each.
    Month,
    /// A calendar year each.
    Year,
}

impl PartitionChoice {
    /// The period for a table whose first day has `rows` rows.
    pub fn resolve(self, rows: usize, small: Period) -> Period {
        match self {
            Self::Auto if rows > 5000 => Period::Day,
            Self::Auto => small,
            Self::Day => Period::Day,
            Self::Month => Period::Month,
            Self::Year => Period::Year,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datasets::quality::CHAIN;

    #[test]
    fn actions_by_rule() {
        let read = |text: &str| serde_json::from_str::<OnBadRows>(text);
        let bad = read(r#"{"default":"keep","crossed_quote":"fail"}"#).unwrap();
        assert_eq!(bad.of(CHAIN, "crossed_quote"), Action::Fail);
        assert_eq!(bad.of(CHAIN, "no_quote"), Action::Keep);
        assert_eq!(
            serde_json::to_string(&bad).unwrap(),
            r#"{"default":"keep","crossed_quote":"fail"}"#
        );
        assert_eq!(serde_json::to_string(&read("\"drop\"").unwrap()).unwrap(), "\"drop\"");
        assert_eq!(read("\"fail\"").unwrap().of(CHAIN, "zero_bid"), Action::Keep);
        assert!(
            read("\"ignore\"")
                .unwrap_err()
                .to_string()
                .contains("`drop`, `keep`, `fail`")
        );
        let problem = read(r#"{"crosed_quote":"keep"}"#).unwrap().check(CHAIN).unwrap_err();
        assert_eq!(problem.field, "on_bad_rows.crosed_quote");
        assert_eq!(problem.hint.unwrap(), "did you mean `crossed_quote`?");
    }

    #[test]
    fn a_calendar_that_does_not_fit_is_not_used() {
        let days = |step: usize| (0..400).step_by(step).map(Date).collect::<BTreeSet<_>>();
        assert_eq!(
            CalendarChoice::Auto.resolve(CalendarName::Weekends, &days(1)),
            CalendarName::None
        );
        assert_eq!(
            CalendarChoice::Weekends.resolve(CalendarName::Us, &days(1)),
            CalendarName::Weekends
        );
        let weekdays = days(1).into_iter().filter(|day| !day.is_weekend()).collect();
        assert_eq!(
            CalendarChoice::Auto.resolve(CalendarName::Weekends, &weekdays),
            CalendarName::Weekends
        );
    }
}
