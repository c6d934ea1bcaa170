//! Several snapshots of a day: the choice of one, as a chain has one row for each contract and day.

use super::columns::Chain;
use datasets::Date;
use datasets::contract::TimeOfDay;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use stages_core::StageError;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The snapshot of a day that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snapshot {
    /// Of each contract, the first.
    First,
    /// Of each contract, the last.
    Last,
    /// That of this time.
    At(TimeOfDay),
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => f.write_str("first"),
            Self::Last => f.write_str("last"),
            Self::At(time) => time.fmt(f),
        }
    }
}

impl FromStr for Snapshot {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "first" => Ok(Self::First),
            "last" => Ok(Self::Last),
            time => time.parse().map(Self::At).map_err(|_| {
                format!("`{text}` is not a snapshot; write `first`, `last` or a time of day such as \"15:45\"")
            }),
        }
    }
}

impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Snapshot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Snapshot {
    fn schema_name() -> Cow<'static, str> {
        "Snapshot".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "string", "pattern": r"^(first|last|\d{1,2}:\d{2})$", "description": "first, last, or a time of day such as \"15:45\"." })
    }
}

/// The minute of the day of a text with a time (`2019-06-28 15:45:00`, `6/28/2019 3:45 PM`); `None` without one.
pub fn minute_of_day(text: &str) -> Option<i32> {
    let (before, after) = text.split_once(':')?;
    let digits = before.bytes().rev().take(2).take_while(u8::is_ascii_digit).count();
    let hour: i32 = before.get(before.len() - digits..)?.parse().ok()?;
    let minute: i32 = after.get(..2)?.parse().ok()?;
    let half = text.get(text.len() - 2..).unwrap_or_default();
    let hour = match (half.eq_ignore_ascii_case("am"), half.eq_ignore_ascii_case("pm"), hour) {
        (true, _, 12) => 0,
        (_, true, 1..12) => hour + 12,
        _ => hour,
    };
    (hour < 24 && minute < 60).then_some(hour * 60 + minute)
}

/// Minutes after midnight.
pub fn minutes(time: TimeOfDay) -> i32 {
    (time.hours() * 60.0).round() as i32
}

/// The error for files without a row of a time, which have those of `found`.
pub fn none_at(time: TimeOfDay, found: impl Iterator<Item = i32>) -> StageError {
    StageError::new(format!("the files have no row of {time}"))
        .hint(format!("`snapshot` may be `first`, `last`, or one of {}", times(found)))
}

/// Keeps one snapshot of each day, where the rows have times, and returns the number of rows left out.
///
/// # Errors
/// A contract with several snapshots on one day, where none is chosen.
pub fn choose(chain: &mut Chain, snapshot: Option<Snapshot>) -> Result<u64, StageError> {
    if chain.time.is_empty() {
        return Ok(0);
    }
    let before = chain.len();
    if let Some(Snapshot::At(time)) = snapshot {
        let keep: Vec<bool> = chain.time.iter().map(|of_row| *of_row == minutes(time)).collect();
        chain.retain(&keep);
        return Ok((before - chain.len()) as u64);
    }
    let rows = chain.by_key_and_time();
    let mut keep = vec![true; chain.len()];
    for contract in rows.chunk_by(|a, b| chain.same_key(*a as usize, *b as usize)) {
        let time = |row: &u32| chain.time[*row as usize];
        let (Some(first), Some(last)) = (contract.first().map(time), contract.last().map(time)) else {
            continue;
        };
        if first == last {
            continue;
        }
        let wanted = match snapshot {
            Some(Snapshot::First) => first,
            Some(Snapshot::Last | Snapshot::At(_)) => last,
            None => {
                let row = contract[0] as usize;
                return Err(StageError::new(format!(
                    "the files have several snapshots of a day: on {}, a contract of {} is quoted at {}",
                    Date(chain.date[row]),
                    chain.name(chain.symbol[row]),
                    times(contract.iter().map(time))
                ))
                .hint("a chain has one: choose it with `snapshot: first`, `snapshot: last` or its time, such as `snapshot: \"15:45\"`"));
            }
        };
        for row in contract {
            keep[*row as usize] = time(row) == wanted;
        }
    }
    chain.retain(&keep);
    Ok((before - chain.len()) as u64)
}

/// Times of day as text, the first few of many.
fn times(minutes: impl Iterator<Item = i32>) -> String {
    const SHOWN: usize = 6;
    let distinct: BTreeSet<i32> = minutes.filter(|minute| *minute >= 0).collect();
    let shown: Vec<String> = distinct
        .iter()
        .take(SHOWN)
        .map(|minute| format!("{:02}:{:02}", minute / 60, minute % 60))
        .collect();
    let more = if distinct.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_of_the_day() {
        for (text, minute) in [
            ("2019-06-28 15:45:00", Some(945)),
            ("2019-06-28T09:05", Some(545)),
            ("6/28/2019 3:45 PM", Some(945)),
            ("6/28/2019 12:05 am", Some(5)),
            ("2019-06-28 00:00:00-04:00", Some(0)),
            ("2019-06-28", None),
            ("28:99", None),
        ] {
            assert_eq!(minute_of_day(text), minute, "{text}");
        }
    }

    #[test]
    fn choices_are_words_or_times() {
        assert_eq!("15:45".parse::<Snapshot>().unwrap().to_string(), "15:45");
        assert_eq!("last".parse(), Ok(Snapshot::Last));
        assert!("noon".parse::<Snapshot>().unwrap_err().contains("`first`, `last`"));
    }
}
