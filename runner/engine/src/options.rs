//! What a run works on, how it is to go, and what stops it.

use crate::executor::Executor;
use cache::{ActionKey, Store};
use runner_pipeline::Pipeline;
use stages_core::CancelToken;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How a run is to go.
#[derive(Clone)]
pub struct Options {
    /// The run's id.
    pub run: String,
    /// Name and version of the program.
    pub program: String,
    /// How many stages run side by side at most.
    pub jobs: usize,
    /// How many threads they share.
    pub threads: usize,
    /// How much memory they share, in bytes; `None` where it is not known.
    pub memory: Option<u64>,
    /// Whether a failure leaves other branches going.
    pub keep_going: bool,
    /// Whether source files are read although they have not changed since they were hashed.
    pub verify_inputs: bool,
    /// Nodes that run even if they are cached.
    pub force: BTreeSet<usize>,
    /// Nodes that are computed again if they are cached, to see whether they give the same.
    pub check: BTreeSet<usize>,
    /// The keys that nodes must have, where a plan says so; a node with another key fails.
    pub planned: BTreeMap<usize, ActionKey>,
    /// The environment: what `run:` stages may be given of it.
    pub env: BTreeMap<String, String>,
    /// Where stages that do not finish leave their logs.
    pub logs: PathBuf,
    /// How long a stage may take to stop once it was asked.
    pub grace: Duration,
    /// What the stages were in earlier runs.
    pub past: Arc<dyn Past>,
}

/// What the stages of a pipeline were in its earlier runs: asked only about what is not cached.
pub trait Past: Send + Sync {
    /// The last time that this stage ended well: the run and the action key.
    fn last(&self, stage: &str) -> Option<(String, ActionKey)>;

    /// Every different action of this stage that ended well, newest first, each with the newest run that had it.
    fn all(&self, stage: &str) -> Vec<(String, ActionKey)>;
}

/// Stops a run.
#[derive(Clone, Debug, Default)]
pub struct Control {
    /// Asks running stages to stop; nothing new starts.
    pub cancel: CancelToken,
    /// Ends them at once.
    pub kill: CancelToken,
}

/// What a run works on.
pub struct Run<'a> {
    /// The pipeline.
    pub pipeline: &'a Pipeline,
    /// The nodes to run; what they need is among them.
    pub chosen: &'a [usize],
    /// The store.
    pub store: &'a Store,
    /// The executor of its actions.
    pub executor: &'a dyn Executor,
    /// How it is to go.
    pub options: &'a Options,
    /// Stops it.
    pub control: &'a Control,
}
