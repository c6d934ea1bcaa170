//! The state of a night.

use chrono::{DateTime, Utc};
use runner_engine::stamp;
use serde::{Deserialize, Serialize};

/// The state of a night.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NightStatus {
    /// Its data is not there yet.
    Waiting,
    /// Its run is in progress.
    Running,
    /// Its run succeeded.
    Done,
    /// Its run failed, or could not start.
    Failed,
    /// Its run was interrupted or killed.
    Killed,
    /// Its data did not come in time.
    Late,
    /// It was missed, and is not made up for.
    Skipped,
}

impl NightStatus {
    /// The name, as files and messages have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Killed => "killed",
            Self::Late => "late",
            Self::Skipped => "skipped",
        }
    }

    /// True if nothing is left to do for the night.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Done | Self::Skipped)
    }
}

/// A night, as far as it has come.
#[derive(Clone, Debug, Serialize)]
pub struct Night {
    /// Its name.
    pub night: String,
    /// The instant at which it was due.
    #[serde(with = "stamp")]
    pub due: DateTime<Utc>,
    /// Its state.
    pub status: NightStatus,
    /// The start of its last run.
    #[serde(serialize_with = "stamp::optional", skip_serializing_if = "Option::is_none")]
    pub started: Option<DateTime<Utc>>,
    /// The time at which it came to its state, if it is a final one.
    #[serde(serialize_with = "stamp::optional", skip_serializing_if = "Option::is_none")]
    pub ended: Option<DateTime<Utc>>,
    /// Its last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The number of its runs.
    pub attempts: u32,
    /// The reason for its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The decision of `then:` after its run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// True if its state is that of its run, because the log has no end of it: what comes after the run may
    /// not have been done.
    #[serde(skip)]
    pub is_of_run: bool,
}
