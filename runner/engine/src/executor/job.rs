//! The job of an action, its result, and the trait of executors.

use super::limits::Limits;
use crate::key::RUN;
use cache::{ActionKey, ArtifactDigest, BlobRef, OpenUpstream, Store, WorkerReport, WorkerSettings};
use runner_pipeline::{Command, Isolation};
use serde::{Deserialize, Serialize};
use stages_core::{EventSink, Outputs, Settings, Source, StageError};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Runs actions.
pub trait Executor: Send + Sync {
    /// Runs an action to completion. Blocks.
    ///
    /// # Errors
    /// If it fails, is cancelled, or exceeds its time limit.
    fn run(&self, job: &Job, events: &Arc<dyn EventSink>, limits: &Limits) -> Result<Done, StageError>;
}

/// An action, with everything that a worker needs to run it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// Its action key.
    pub key: ActionKey,
    /// The stage that requests it, for messages.
    pub stage: String,
    /// The directory of the store.
    pub home: PathBuf,
    /// The work.
    pub work: JobWork,
    /// The input artifacts, by port.
    pub inputs: BTreeMap<String, Vec<ArtifactDigest>>,
    /// The files outside the store that the action reads.
    pub sources: Vec<Source>,
    /// The number of threads it may use.
    pub threads: usize,
    /// If set, computes from scratch, without memos and checkpoints of earlier runs.
    #[serde(default)]
    pub fresh: bool,
    /// The log file of an external program; kept if the program fails.
    pub log: PathBuf,
    /// The upstream store for read-through.
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

/// The work of an action.
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
        config: Settings,
    },
    /// An external program, which no worker is asked to run: it has processes of its own.
    #[serde(skip)]
    Command(Box<Program>),
}

/// An external program, with what a run adds to its stage.
#[derive(Clone, Debug)]
pub struct Program {
    /// The stage.
    pub command: Arc<Command>,
    /// Its environment besides what every program gets: `env:`, and the values of its secrets.
    pub env: BTreeMap<String, String>,
    /// The isolation that is asked for: the stage's, or the user's default.
    pub isolation: Isolation,
    /// The key of the same stage without inputs, in the keys of memos.
    pub code: ActionKey,
    /// The limit of its memory in bytes.
    pub memory: Option<u64>,
    /// The variables of the engine's environment by which it finds programs and containers; no program is
    /// given them.
    pub host_env: BTreeMap<String, String>,
    /// The directory of the pipeline, for hints.
    pub base: PathBuf,
}

/// The result of an action.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// Its output artifacts, by name.
    pub outputs: Outputs,
    /// Its log.
    pub log: Option<BlobRef>,
    /// Peak resident memory in bytes, if known.
    pub peak_memory: Option<u64>,
    /// The numerics class of the outputs, if it is not the CPU's.
    #[serde(default)]
    pub numerics_class: Option<String>,
    /// The isolation of an external program.
    #[serde(default)]
    pub isolation: Option<String>,
    /// The limit of the memory of an external program in bytes, if it has one and it is enforced.
    #[serde(default)]
    pub memory_limit: Option<u64>,
    /// The programs that an external program and its family executed, if they were observed.
    #[serde(default)]
    pub executed: Option<Vec<PathBuf>>,
    /// The state of the upstream store when the worker exits.
    #[serde(default)]
    pub upstream: WorkerReport,
}

/// The kind of a job, for messages.
impl JobWork {
    /// The stage kind; [`RUN`] for an external program.
    pub fn kind(&self) -> &str {
        match self {
            Self::Kind { name, .. } => name,
            Self::Command(_) => RUN,
        }
    }
}
