//! The inputs, options and controls of a run.

use crate::executor::{Elsewhere, Executor};
use cache::{ActionKey, Store};
use runner_pipeline::{Isolation, Pipeline};
use stages_core::CancelToken;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The options of a run.
#[derive(Clone)]
pub struct Options {
    /// The run's id.
    pub run: String,
    /// The name and version of the program.
    pub program: String,
    /// The night of the pipeline's schedule that it is of.
    pub night: Option<String>,
    /// The maximum number of concurrent stages.
    pub jobs: usize,
    /// The number of threads that they share.
    pub threads: usize,
    /// The memory that they share, in bytes; `None` if unknown.
    pub memory: Option<u64>,
    /// If set, a failure does not stop independent branches.
    pub keep_going: bool,
    /// If set, source files are rehashed even if they are unchanged since they were last hashed.
    pub verify_inputs: bool,
    /// Nodes that run even if they are cached.
    pub force: BTreeSet<usize>,
    /// Nodes that are recomputed if they are cached, to compare their outputs.
    pub check: BTreeSet<usize>,
    /// The keys that nodes must have according to a plan; a node with a different key fails.
    pub planned: BTreeMap<usize, ActionKey>,
    /// The environment from which `run:` stages receive variables.
    pub env: BTreeMap<String, String>,
    /// The executor of stages that name none; `None` for this machine.
    pub executor: Option<String>,
    /// The properties of the executors of other machines, by name.
    pub elsewhere: BTreeMap<String, Elsewhere>,
    /// The default isolation of `run:` stages.
    pub isolation: Isolation,
    /// The directory for the logs of stages that do not complete.
    pub logs: PathBuf,
    /// The grace period between the request to stop and the kill of a stage.
    pub grace: Duration,
    /// The actions of stages in earlier runs.
    pub past: Arc<dyn Past>,
}

/// The history of a pipeline's stages in earlier runs; queried only for stages that are not cached.
pub trait Past: Send + Sync {
    /// The last successful run of this stage: the run and the action key.
    fn last(&self, stage: &str) -> Option<(String, ActionKey)>;

    /// All distinct successful actions of this stage, newest first, each with the newest run that had it.
    fn all(&self, stage: &str) -> Vec<(String, ActionKey)>;
}

/// The cancellation tokens of a run.
#[derive(Clone, Debug, Default)]
pub struct Control {
    /// Requests running stages to stop; no new stage starts.
    pub cancel: CancelToken,
    /// Kills running stages immediately.
    pub kill: CancelToken,
}

/// The inputs of a run.
pub struct Run<'a> {
    /// The pipeline.
    pub pipeline: &'a Pipeline,
    /// The nodes to run, including all that they need.
    pub chosen: &'a [usize],
    /// The store.
    pub store: &'a Store,
    /// The executor of this machine.
    pub executor: &'a dyn Executor,
    /// The executors of other machines, by name.
    pub others: &'a BTreeMap<String, Box<dyn Executor>>,
    /// The options of the run.
    pub options: &'a Options,
    /// The cancellation tokens of the run.
    pub control: &'a Control,
}
