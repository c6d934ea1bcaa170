//! The order of jobs of a search: a pure function of the results, in the order of the jobs.

use crate::Settings;
use serde::{Deserialize, Serialize};

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
}

/// The outcome of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The objectives of each seed, as they are (not losses); empty if the job failed.
    pub objectives: Vec<Vec<f64>>,
    /// The metrics of the constraints, for each seed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Vec<f64>>,
    /// The time that its stages took when they were computed, in seconds.
    pub seconds: f64,
    /// The reason why the job failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The next step of a search.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// A job to start.
    Job(Job),
    /// Nothing before another result is told.
    Wait,
    /// The search is done when the jobs under way are.
    Done,
}
