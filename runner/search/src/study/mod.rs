//! The order of jobs of a search: a pure function of the results, in the order of the jobs.
//!
//! Job `j` is decided by the results of the jobs `0..=j - workers`, whichever of the others have ended; if
//! these leave nothing to decide, by one more, and so on. In a synchronous search, it is decided by the
//! results of all jobs before its wave: a batch of new trials, or those of them that go on to the next rung.
//!
//! | | a trial goes on past a rung |
//! | --- | --- |
//! | `asha` | if it is among the best `1 / factor` of the results there, and when it first is (Li and others 2020) |
//! | `hyperband` | as with `asha`, among the trials with the same first rung (Li and others 2018) |
//! | `median` | unless more than half of the results there before it are better; the first five go on |
//!
//! Highest rung first; equal results in the order of trials. With several objectives, trials are compared by
//! non-dominated sorting. When no result is to come, the best trial of a rung goes on although there are
//! fewer than `factor`, so that one comes to the end.

mod expected;
mod pruner;
mod score;
mod state;

pub use expected::jobs_left;
pub use score::{Score, best, fronts};
pub use state::Study;

use crate::Settings;
use serde::{Deserialize, Deserializer, Serialize};

/// A job: one trial up to one rung, with all seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The job's number, from 0.
    pub job: u32,
    /// The trial's number, from 0.
    pub trial: u32,
    /// The rung, from 0.
    pub rung: usize,
    /// The value of the resource at the rung; `None` at the last rung, where it is the full one.
    pub resource: Option<u64>,
    /// The trial's settings.
    pub settings: Settings,
    /// The number of the first jobs whose results it was decided by.
    pub seen: u32,
    /// The digest of these results: 16 hex digits.
    pub basis: String,
}

/// The outcome of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The objectives of each seed, as they are (not losses); empty if the job failed.
    #[serde(deserialize_with = "rows")]
    pub objectives: Vec<Vec<f64>>,
    /// The metrics of the constraints, for each seed.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "rows")]
    pub constraints: Vec<Vec<f64>>,
    /// The time that its stages took when they were computed, in seconds.
    pub seconds: f64,
    /// The reason why the job failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Reads rows of numbers; JSON has no NaN and no infinities, which are written as `null`.
fn rows<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Vec<f64>>, D::Error> {
    let rows: Vec<Vec<Option<f64>>> = Vec::deserialize(deserializer)?;
    let row = |row: Vec<Option<f64>>| row.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect();
    Ok(rows.into_iter().map(row).collect())
}

/// The next step of a search.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// A job to start.
    Job(Job),
    /// Nothing before another result is told.
    Wait,
    /// The search is done: all its jobs have ended.
    Done,
    /// The search has stopped, for this reason: the first jobs, or all, failed.
    Failed(String),
}
