//! An action to run, what it gave, and who runs it.

use super::limits::Limits;
use crate::key::RUN;
use cache::{ActionKey, ArtifactDigest, BlobRef, OpenUpstream, Store, WorkerReport, WorkerSettings};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stages_core::{EventSink, Outputs, Source, StageError};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Runs actions.
pub trait Executor: Send + Sync {
    /// Runs one to its end. Blocks.
    ///
    /// # Errors
    /// When it fails, was asked to stop, or takes longer than its time limit.
    fn run(&self, job: &Job, events: &Arc<dyn EventSink>, limits: &Limits) -> Result<Done, StageError>;
}

/// An action: all that a worker has to know.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// Its key.
    pub key: ActionKey,
    /// The stage that asks for it, for messages.
    pub stage: String,
    /// The folder of the store.
    pub home: PathBuf,
    /// What to do.
    pub work: JobWork,
    /// The input artifacts, by port.
    pub inputs: BTreeMap<String, Vec<ArtifactDigest>>,
    /// The files outside the store that it reads.
    pub sources: Vec<Source>,
    /// How many threads it may use.
    pub threads: usize,
    /// Whether it computes from nothing, without memos and checkpoints of earlier work.
    #[serde(default)]
    pub fresh: bool,
    /// Where an external program's output goes; kept there when it fails.
    pub log: PathBuf,
    /// The upstream store that is read through.
    #[serde(default)]
    pub upstream: Option<WorkerSettings>,
}

impl Job {
    /// Opens the store, with its upstream.
    pub(super) fn store(&self, open_upstream: OpenUpstream) -> cache::Result<Store> {
        let store = Store::open(&self.home)?;
        match &self.upstream {
            Some(settings) => {
                let upstream = open_upstream(&store, settings)?;
                Ok(store.with_upstream(upstream))
            }
            None => Ok(store),
        }
    }
}

/// What an action does.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobWork {
    /// A stage kind.
    Kind {
        /// Its name.
        name: String,
        /// Its version.
        version: u32,
        /// Its configuration, defaults filled in.
        config: Value,
    },
    /// An external program.
    Command {
        /// The text for `sh -c`, where `${needs.X}` and `${outputs.X}` are still to be replaced.
        command: String,
        /// Its outputs: name to file name.
        outputs: BTreeMap<String, String>,
        /// The folders of collected inputs, by port.
        points: BTreeMap<String, Vec<String>>,
        /// Its environment, complete.
        env: BTreeMap<String, String>,
        /// The variables of it whose values are hidden in logs.
        secrets: Vec<String>,
    },
}

/// What an action gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// Its output artifacts, by name.
    pub outputs: Outputs,
    /// Its log.
    pub log: Option<BlobRef>,
    /// Peak resident memory in bytes, where known.
    pub peak_memory: Option<u64>,
    /// The numerics class of the outputs, where it is not the processor's.
    #[serde(default)]
    pub numerics_class: Option<String>,
    /// The state of the upstream store at the worker's end.
    #[serde(default)]
    pub upstream: WorkerReport,
}

/// The kind of a job, for messages.
impl JobWork {
    /// The stage kind; [`RUN`] for an external program.
    pub fn kind(&self) -> &str {
        match self {
            Self::Kind { name, .. } => name,
            Self::Command { .. } => RUN,
        }
    }
}
