//! The schedule of a pipeline.

use super::cron::Cron;
use crate::Notify;
use datasets::calendar::CalendarName;
use datasets::contract::TimeOfDay;
use datasets::{Date, TimeZone};
use serde_json::Value;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The block `schedule:` of a pipeline file.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// The times at which nights are due.
    pub when: When,
    /// The time zone of these times and of dates.
    pub zone: TimeZone,
    /// The days that have a night.
    pub calendar: CalendarName,
    /// The first night; without it, the latest that is due when the schedule is first run.
    pub from: Option<Date>,
    /// The data that a night waits for.
    pub wait_for: Option<WaitFor>,
    /// The treatment of nights that were missed.
    pub catch_up: CatchUp,
    /// The longest time that the run of a night takes.
    pub timeout: Option<Duration>,
    /// The number of its runs that the history keeps; all by default.
    pub keep_runs: Option<usize>,
    /// The decision after a night's run.
    pub then: Option<Then>,
}

/// The block `then:`: the decision of a registered policy once a night's run is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Then {
    /// The policy: `NAME@ALIAS` or `NAME@VERSION`.
    pub act: String,
    /// Its data as by `--data` of `runner policy act`, relative to the pipeline's directory.
    pub data: Vec<String>,
    /// If true, the files stand in place of the stages' own ones.
    pub replace: bool,
    /// The positions that are held: a file, relative to the pipeline's directory, `none` or `played`.
    pub positions: Option<String>,
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

/// The block `wait_for:`.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitFor {
    /// The stages whose source files are waited for.
    pub sources: Vec<String>,
    /// Files by their paths, relative to the pipeline's directory.
    pub files: Vec<String>,
    /// The local time after which a night is late; a time before the due time is one of the next day.
    pub until: TimeOfDay,
    /// The time for which size and modification time of each file must have been unchanged.
    pub stable_for: Duration,
}

/// The treatment of nights that were missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CatchUp {
    /// All are made up for, in order.
    #[default]
    All,
    /// The latest is, the others are skipped.
    Latest,
    /// A night is skipped once its window is over: `until` of `wait_for`, or an hour after it was due.
    None,
}

impl CatchUp {
    pub(crate) const ALL: [(&'static str, Self); 3] =
        [("all", Self::All), ("latest", Self::Latest), ("none", Self::None)];

    /// The name, as files have it.
    pub fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(_, known)| *known == self)
            .map_or("", |(name, _)| name)
    }
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
    /// The day on which it is due.
    pub date: Date,
    /// The day of the night before.
    pub previous: Date,
}

impl NightDates {
    /// Their names in interpolations.
    pub(crate) const NAMES: [&'static str; 2] = ["date", "previous"];

    /// Dates that stand for any night's when a file is checked.
    pub(crate) const EXAMPLE: Self = Self {
        date: Date(18_075),
        previous: Date(18_074),
    };

    /// The value of a name.
    pub(crate) fn get(self, name: &str) -> Option<Value> {
        let date = match name {
            "date" => self.date,
            "previous" => self.previous,
            _ => return None,
        };
        Some(Value::String(date.to_string()))
    }
}

/// A pipeline with a schedule, as far as the schedule concerns it: its stages are not resolved.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// The pipeline's name.
    pub name: String,
    /// The directory of its file, absolute.
    pub base: PathBuf,
    /// Its schedule.
    pub schedule: Schedule,
    /// The messages that are sent when a run has ended.
    pub notify: Vec<Notify>,
}
