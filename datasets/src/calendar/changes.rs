//! Calendars with days that an exchange announced later than the table was made.

use super::CalendarName;
use crate::Date;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Mutex;

/// A calendar and the days on which the exchange departs from it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Changes {
    /// The calendar that is changed: a name, or the code of an exchange.
    #[schemars(with = "String")]
    pub base: CalendarName,
    /// Days without trading.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub closed: BTreeSet<Date>,
    /// Half days, which end at the exchange's usual time.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub early: BTreeSet<Date>,
    /// Days with trading, such as a special session on a Saturday.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub open: BTreeSet<Date>,
}

impl Changes {
    /// The calendar with these changes. Its description is kept as long as the program runs, once for all
    /// equal ones.
    ///
    /// # Errors
    /// A text that says which days contradict each other.
    pub fn calendar(self) -> Result<CalendarName, String> {
        static KNOWN: Mutex<BTreeSet<&'static Changes>> = Mutex::new(BTreeSet::new());
        if matches!(self.base, CalendarName::Changed(_)) {
            return Err("`base` is a name or the code of an exchange".to_owned());
        }
        let days = self.early.union(&self.open).find(|day| self.closed.contains(day));
        if let Some(day) = days {
            return Err(format!("{day} is both `closed` and `open` or `early`"));
        }
        let trades = |day: &&Date| super::is_trading_day(self.base, **day);
        if let Some(day) = self.early.iter().find(|day| !trades(day) && !self.open.contains(day)) {
            return Err(format!(
                "{day}, a half day, has no trading in `{}`: correct it, or add it to `open`",
                self.base
            ));
        }
        if let Some(day) = self.closed.iter().find(|day| day.is_weekend() && !trades(day)) {
            return Err(format!(
                "{day}, a day without trading, is a weekend and has none in `{}` anyway: correct it",
                self.base
            ));
        }
        if !self.early.is_empty() && super::usual_half_day(self.base).is_none() {
            return Err(format!(
                "the calendar `{}` has no half days: leave `early` out",
                self.base
            ));
        }
        if self.closed.is_empty() && self.early.is_empty() && self.open.is_empty() {
            return Ok(self.base);
        }
        let mut known = KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let kept = match known.get(&self) {
            Some(kept) => kept,
            None => {
                let kept: &'static Self = Box::leak(Box::new(self));
                known.insert(kept);
                kept
            }
        };
        Ok(CalendarName::Changed(kept))
    }
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.base.name())?;
        for (word, days) in [("closed", &self.closed), ("early", &self.early), ("open", &self.open)] {
            if !days.is_empty() {
                let days: Vec<String> = days.iter().map(Date::to_string).collect();
                write!(f, ", {word} on {}", days.join(", "))?;
            }
        }
        Ok(())
    }
}

impl Serialize for CalendarName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Changed(changes) => changes.serialize(serializer),
            other => serializer.serialize_str(other.name()),
        }
    }
}

impl<'de> Deserialize<'de> for CalendarName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = CalendarName;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a calendar's name, or `{ base: …, closed: [DATE, …], early: […], open: […] }`")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<CalendarName, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CalendarName, A::Error> {
                let changes = Changes::deserialize(MapAccessDeserializer::new(map))?;
                changes.calendar().map_err(A::Error::custom)
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl JsonSchema for CalendarName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CalendarName".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = Self::codes().collect();
        json_schema!({
            "description": "A calendar: its name, the ISO 10383 code of its exchange, or one with changes.",
            "anyOf": [{ "enum": names }, generator.subschema_for::<Changes>()]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_that_change_nothing_are_refused() {
        let calendar = |closed: &[&str], early: &[&str]| {
            let days = |days: &[&str]| days.iter().filter_map(|day| day.parse().ok()).collect();
            let changes = Changes {
                base: CalendarName::Us,
                closed: days(closed),
                early: days(early),
                open: BTreeSet::new(),
            };
            changes.calendar().map(|_| ())
        };
        for (closed, early) in [
            (&["2025-01-11"][..], &[][..]),
            (&[], &["2025-01-11"]),
            (&[], &["2025-12-25"]),
        ] {
            assert!(calendar(closed, early).is_err(), "{closed:?}, {early:?}");
        }
        assert_eq!(calendar(&["2025-01-09", "2025-12-25"], &["2025-07-03"]), Ok(()));
    }
}
