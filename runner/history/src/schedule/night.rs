//! The state of a night.

use chrono::{DateTime, Utc};
use runner_engine::stamp;
use serde::{Deserialize, Serialize};

/// The state of a night.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NightStatus {
    /// The night's data is not there yet.
    Waiting,
    /// The night's run is in progress.
    Running,
    /// The night's run succeeded.
    Done,
    /// The night's run failed, or could not start.
    Failed,
    /// The night's run was interrupted or killed.
    Killed,
    /// The night's data did not arrive in time.
    Late,
    /// The night was missed and is not made up for, or a person skipped it.
    Skipped,
}

impl NightStatus {
    /// The status's name in files and messages.
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

/// A night and its current state.
#[derive(Clone, Debug, Serialize)]
pub struct Night {
    /// The night's name.
    pub night: String,
    /// The instant at which the night was due.
    #[serde(with = "stamp")]
    pub due: DateTime<Utc>,
    /// The night's state.
    pub status: NightStatus,
    /// The start of the night's last run.
    #[serde(serialize_with = "stamp::optional", skip_serializing_if = "Option::is_none")]
    pub started: Option<DateTime<Utc>>,
    /// The time at which the night reached its state, if the state is final.
    #[serde(serialize_with = "stamp::optional", skip_serializing_if = "Option::is_none")]
    pub ended: Option<DateTime<Utc>>,
    /// The id of the night's last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The number of the night's runs.
    pub attempts: u32,
    /// The reason for the night's state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The decision that `then:` made after the night's run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// True if the state was derived from the night's run because the log has no end of the night: steps that
    /// follow the run may not have been done.
    #[serde(skip)]
    pub is_of_run: bool,
    /// True if a person skipped the night before it was tried: nights before it may not have been tried yet.
    #[serde(skip)]
    pub is_ahead: bool,
}

impl Night {
    /// A night that waits for its data.
    pub(super) fn new(night: String, due: DateTime<Utc>) -> Self {
        Self {
            night,
            due,
            status: NightStatus::Waiting,
            started: None,
            ended: None,
            run: None,
            attempts: 0,
            why: None,
            decision: None,
            is_of_run: false,
            is_ahead: false,
        }
    }
}
