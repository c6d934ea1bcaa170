//! The schedule of a pipeline.

use super::cron::Cron;
use crate::Notify;
use crate::text::{Several, Text, Written, duration, is_name, several, some_text, suggest, text};
use datasets::calendar::{CalendarName, Changes};
use datasets::contract::TimeOfDay;
use datasets::{Date, TimeZone};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

/// The name of the calendar on which every day has a night.
pub(crate) const EVERY_DAY: &str = "every_day";

/// The longest time after the close.
const LONGEST_AFTER_CLOSE: Duration = Duration::from_secs(12 * 3600);

/// The nights on which `runner schedule` runs the pipeline.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("oneOf" = [{ "required": ["at"] }, { "required": ["cron"] }, { "type": "null" }]))]
pub struct Schedule {
    /// The local time, `18:30`, or a time after the exchange's close, which is earlier on a half day:
    /// `close + 2h30m`.
    #[serde(deserialize_with = "some_text")]
    #[schemars(with = "Option<Text<When>>")]
    pub at: Option<When>,
    /// Minute, hour, day of the month, month and day of the week: `30 18 * * 1-5`. Only on days of the
    /// calendar.
    #[serde(deserialize_with = "some_text")]
    #[schemars(with = "Option<Text<Cron>>")]
    pub cron: Option<Cron>,
    /// The time zone, an IANA name; by default that of the exchange, or UTC.
    #[serde(deserialize_with = "some_text")]
    #[schemars(with = "Option<Text<TimeZone>>")]
    pub timezone: Option<TimeZone>,
    /// The days that have a night: the trading days of an exchange by its ISO 10383 code or its name here, or
    /// every day.
    #[serde(deserialize_with = "some_calendar")]
    #[schemars(schema_with = "calendar_schema", extend("default" = EVERY_DAY))]
    pub calendar: Option<CalendarName>,
    /// The date of the first night; by default, the latest that is due when the schedule is first run.
    #[schemars(with = "Option<String>")]
    pub from: Option<Date>,
    /// The data that a night waits for.
    pub wait_for: Option<WaitFor>,
    /// The treatment of missed nights: all are made up for in order, the latest is, or none.
    #[schemars(extend("default" = "all"))]
    pub catch_up: CatchUp,
    /// Values set in a night, as by `--set`: parameters, or `STAGE.with.KEY`; `${schedule.date}` and
    /// `${schedule.previous}` are its dates.
    pub params: Option<serde_json::Map<String, Value>>,
    /// The longest time that the run of a night takes.
    #[serde(deserialize_with = "some_text")]
    #[schemars(with = "Option<Text<Duration>>")]
    pub timeout: Option<Duration>,
    /// The runs that the history keeps.
    pub keep: Option<Keep>,
    /// The decision of a registered policy once a night's run is done, as by `runner policy act`.
    pub then: Option<Then>,
}

/// The runs of a schedule that the history keeps.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Keep {
    /// The number of the schedule's latest runs.
    pub runs: NonZeroUsize,
}

impl Schedule {
    /// The times of a day at which nights are due.
    pub fn when(&self) -> When {
        let cron = self.cron.map(When::Cron);
        self.at.or(cron).unwrap_or(When::AfterClose(Duration::ZERO))
    }

    /// The days that have a night.
    pub fn calendar(&self) -> CalendarName {
        self.calendar.unwrap_or(CalendarName::Always)
    }

    /// The time zone of due times and dates.
    pub fn zone(&self) -> TimeZone {
        let exchange = || TimeZone::named(self.calendar().session()?.time_zone);
        self.timezone.or_else(exchange).unwrap_or(TimeZone::UTC)
    }
}

/// The decision of a registered policy once a night's run is done, as by `runner policy act`, and the night
/// of a paper account, as by `runner paper run`. At least one of `act` and `paper` is given.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Then {
    /// The policy: `NAME@ALIAS`, such as `desk@champion`, or `NAME@VERSION`.
    #[serde(default, deserialize_with = "version_of_policy")]
    pub act: Option<String>,
    /// The paper account whose night is booked.
    #[serde(default)]
    pub paper: Option<String>,
    /// The files of the night's data, as by `--data`, relative to the pipeline.
    #[serde(default, deserialize_with = "several")]
    #[schemars(with = "Several<String>")]
    pub data: Vec<String>,
    /// Read the files in place of the stages' own ones.
    #[serde(default)]
    #[schemars(extend("default" = null))]
    pub replace: bool,
    /// The positions that are held: a file, relative to the pipeline, `none` (default) or `played`.
    pub positions: Option<String>,
}

fn version_of_policy<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let parts = text.split_once('@');
    let is_version = parts.is_some_and(|(name, version)| is_name(name) && !version.is_empty());
    match is_version {
        true => Ok(Some(text)),
        false => Err(D::Error::custom("\n")),
    }
}

/// The times of a day at which nights are due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// `at: "18:30"`, local time.
    At(TimeOfDay),
    /// `at: close + 2h30m`: after the exchange's close, which is earlier on a half day.
    AfterClose(Duration),
    /// `cron: "30 18 * * 1-5"`, local time.
    Cron(Cron),
}

/// The data that a night waits for.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitFor {
    /// Stages: each of them has a source file that was written on the night's date or later.
    #[serde(default, deserialize_with = "several")]
    #[schemars(with = "Option<Several<String>>")]
    pub sources: Vec<String>,
    /// Paths of files, such as `quotes/${schedule.date}.csv`, relative to the pipeline.
    #[serde(default, deserialize_with = "several")]
    #[schemars(with = "Option<Several<String>>")]
    pub files: Vec<String>,
    /// The local time after which the night is late; a time before the due time is one of the next day.
    #[schemars(with = "String")]
    pub until: TimeOfDay,
    /// The time for which the size and the modification time of each file must have been unchanged.
    #[serde(default, deserialize_with = "text")]
    #[schemars(with = "Option<Text<Duration>>")]
    pub stable_for: Duration,
}

/// The treatment of nights that were missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CatchUp {
    /// All are made up for, in order.
    #[default]
    All,
    /// The latest is, the others are skipped.
    Latest,
    /// A night is skipped once its window is over: `until` of `wait_for`, or an hour after it was due.
    None,
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(time) => write!(f, "at {time}"),
            Self::AfterClose(after) if after.is_zero() => f.write_str("at the close"),
            Self::AfterClose(after) => write!(f, "{} minutes after the close", after.as_secs() / 60),
            Self::Cron(_) => f.write_str("by cron expression"),
        }
    }
}

/// The dates of a night, which `${schedule.date}` and `${schedule.previous}` read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NightDates {
    /// The day on which the night is due.
    pub date: Date,
    /// The day of the night before.
    pub previous: Date,
}

impl NightDates {
    /// The names of the dates in interpolations.
    pub(crate) const NAMES: [&'static str; 2] = ["date", "previous"];

    /// The dates that represent any night's dates when a file is checked.
    pub(crate) const EXAMPLE: Self = Self {
        date: Date(18_075),
        previous: Date(18_074),
    };

    /// The value of the date called `name`.
    pub(crate) fn get(self, name: &str) -> Option<Value> {
        let date = match name {
            "date" => self.date,
            "previous" => self.previous,
            _ => return None,
        };
        Some(Value::String(date.to_string()))
    }
}

/// A pipeline with a schedule. Only what concerns the schedule is read: the stages are not resolved.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// The pipeline's name.
    pub name: String,
    /// The absolute directory of the pipeline file.
    pub base: PathBuf,
    /// The pipeline's schedule.
    pub schedule: Schedule,
    /// The messages that are sent when a run has ended.
    pub notify: Vec<Notify>,
}

/// The codes and the names of all calendars.
fn calendars() -> impl Iterator<Item = &'static str> {
    CalendarName::codes().chain([EVERY_DAY])
}

fn calendar_schema(generator: &mut SchemaGenerator) -> Schema {
    let names: Vec<&str> = calendars().collect();
    json_schema!({ "anyOf": [{ "enum": names }, generator.subschema_for::<Changes>()] })
}

/// Reads a calendar: a name or a code, or one with changes.
fn some_calendar<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<CalendarName>, D::Error> {
    struct Read;
    impl<'de> Visitor<'de> for Read {
        type Value = CalendarName;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a calendar, or `{ base: XNYS, closed: [DATE, …] }`")
        }
        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<CalendarName, E> {
            CalendarName::read(text).map_err(E::custom)
        }
        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CalendarName, A::Error> {
            let changes = Changes::deserialize(MapAccessDeserializer::new(map))?;
            let told = |message| format!("`calendar`: {message}\ncorrect these days, or leave them out");
            changes.calendar().map_err(|message| A::Error::custom(told(message)))
        }
    }
    deserializer.deserialize_any(Read).map(Some)
}

impl Written for When {
    fn read(text: &str) -> Result<Self, String> {
        let Some(after) = text.trim().strip_prefix("close") else {
            let time = text.parse().ok().filter(|time: &TimeOfDay| time.hours() < 24.0);
            return time.map(Self::At).ok_or_else(String::new);
        };
        let after = match after.trim_start().strip_prefix('+') {
            Some(after) => duration(after.trim()),
            None => after.trim().is_empty().then_some(Duration::ZERO),
        };
        let after = after.filter(|after| *after <= LONGEST_AFTER_CLOSE);
        after.map(Self::AfterClose).ok_or_else(String::new)
    }
}

impl Written for Cron {
    fn read(text: &str) -> Result<Self, String> {
        Self::parse(text).map_err(|message| format!("{message}\n"))
    }
}

impl Written for TimeZone {
    fn read(text: &str) -> Result<Self, String> {
        Self::named(text).ok_or_else(String::new)
    }
}

impl Written for CalendarName {
    fn read(text: &str) -> Result<Self, String> {
        let found = match text {
            EVERY_DAY => Some(Self::Always),
            text => Self::of_code(text),
        };
        found.ok_or_else(|| format!("\n{}", suggest(text, "calendars", calendars())))
    }
}
