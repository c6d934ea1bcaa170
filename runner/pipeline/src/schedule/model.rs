//! The schedule of a pipeline.

use super::cron::Cron;
use crate::Notify;
use crate::text::typed::{Several, Text, several, text};
use crate::text::units::is_name;
use datasets::calendar::CalendarName;
use datasets::contract::TimeOfDay;
use datasets::{Date, TimeZone};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The block `schedule:` of a pipeline file.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// The times at which nights are due.
    pub when: When,
    /// The time zone of due times and dates.
    pub zone: TimeZone,
    /// The days that have a night.
    pub calendar: CalendarName,
    /// The date of the first night; without it, the latest night that is due when the schedule is first run.
    pub from: Option<Date>,
    /// The data that a night waits for.
    pub wait_for: Option<WaitFor>,
    /// The treatment of missed nights.
    pub catch_up: CatchUp,
    /// The maximum duration of a night's run.
    pub timeout: Option<Duration>,
    /// The number of the schedule's runs that the history keeps; all if absent.
    pub keep_runs: Option<usize>,
    /// The decision made after a night's run.
    pub then: Option<Then>,
}

/// The decision of a registered policy once a night's run is done, as by `runner policy act`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Then {
    /// The policy: `NAME@ALIAS`, such as `desk@champion`, or `NAME@VERSION`.
    #[serde(deserialize_with = "version_of_policy")]
    pub act: String,
    /// The files of the night's data, as by `--data`, relative to the pipeline.
    #[serde(deserialize_with = "several")]
    #[schemars(with = "Several<String>")]
    pub data: Vec<String>,
    /// Read the files in place of the stages' own ones.
    #[serde(default)]
    #[schemars(extend("default" = null))]
    pub replace: bool,
    /// The positions that are held: a file, relative to the pipeline, `none` (default) or `played`.
    pub positions: Option<String>,
}

fn version_of_policy<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    let parts = text.split_once('@');
    let is_version = parts.is_some_and(|(name, version)| is_name(name) && !version.is_empty());
    is_version.then_some(text).ok_or_else(|| D::Error::custom("\n"))
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
