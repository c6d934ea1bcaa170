//! Runs whose stages are not all known when they begin: a search adds those of a trial when it knows what to
//! try next.

use crate::event::StageStatus;
use cache::Outputs;
use runner_pipeline::{Node, Pipeline};
use serde_json::Value;

/// A stage that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its index in the pipeline.
    pub node: usize,
    /// Its status.
    pub status: StageStatus,
    /// Its output artifacts; empty if it failed or was skipped.
    pub outputs: Outputs,
    /// The time that it took when it was computed, in seconds.
    pub seconds: f64,
    /// The reason why it failed or was skipped.
    pub error: Option<String>,
}

/// Stages to add to a run.
#[derive(Default)]
pub struct Growth {
    /// Nodes of the pipeline that were not chosen and run now, too.
    pub chosen: Vec<usize>,
    /// The nodes, which follow those of the pipeline; their needs are indices into both. All of them run.
    pub nodes: Vec<Node>,
    /// The description of each chosen node and then of each new one, for the history.
    pub resolved: Vec<Value>,
    /// True if a failure of the new nodes is a result: it stops nothing but what needs them, and the run does
    /// not fail by it.
    pub may_fail: bool,
    /// Lines about the run for people.
    pub notes: Vec<String>,
    /// True to start no further stage of the run.
    pub stop: bool,
}

/// Adds stages to a run while it goes on.
pub trait Grow {
    /// The stages to add now that these stages of the run have ended. Called at the beginning, whenever
    /// stages have ended, and again after each answer that adds any. The run ends when nothing is left to run
    /// and nothing is added.
    fn grow(&mut self, pipeline: &Pipeline, ended: &[Ended]) -> Growth;
}
