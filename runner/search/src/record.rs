//! The record of a search: `HOME/searches/ID.jsonl`, a line with a checksum for each job that was decided and
//! each that ended. The search is a function of its settings and of the results, so that the record is a
//! convenience: without it, the same search comes to the same jobs, whose stages are cached.

use crate::study::{Job, Outcome};
use runner_pipeline::Search;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A line of a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Line {
    /// The search; the first line.
    Search(Box<Header>),
    /// A job was decided.
    Decided(Job),
    /// A job ended.
    Ended {
        /// The job's number.
        job: u32,
        /// The outcome.
        #[serde(flatten)]
        outcome: Outcome,
    },
    /// A run of the search ended.
    Ran {
        /// The run's id.
        run: String,
        /// The time that the run took, in seconds.
        seconds: f64,
        /// True if the search is done.
        done: bool,
    },
    /// The best trial was trained again on fresh seeds.
    Final {
        /// The trial's number.
        trial: u32,
        /// The seeds.
        seeds: Vec<u64>,
        /// The objectives of each seed, on the data of the search's own objective.
        outcome: Outcome,
    },
}

/// The description of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The search's id: its pipeline's name, and the first digits of the digest of its settings and of all
    /// that its trials depend on, but for the number of trials and the budget.
    pub id: String,
    /// The digest of the space, the objective and the pipeline's settings outside the space: searches with
    /// the same one can take over each other's trials.
    pub space: String,
    /// The pipeline's name.
    pub pipeline: String,
    /// The pipeline file.
    pub file: PathBuf,
    /// The block `search:`.
    pub search: Search,
    /// The values of the resource at the rungs; the last is the full one. One rung without a value where no
    /// trial is stopped early.
    pub rungs: Vec<Option<u64>>,
    /// The file's own settings in the space.
    pub own: crate::Settings,
}
