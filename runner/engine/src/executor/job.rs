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
    fn run(&self, job: &Job, events: &Arc<dyn EventSink>, limits: &Limits) -> Result<Done, StageError>;
}

/// An action, with everything that a worker needs to run it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The action key.
    pub key: ActionKey,
    /// The stage that requests the action, for messages.
    pub stage: String,
    /// The directory of the store.
    pub home: PathBuf,
    /// The work to do.
    pub work: JobWork,
    /// The input artifacts, by port.
    pub inputs: BTreeMap<String, Vec<ArtifactDigest>>,
    /// The files outside the store that the action reads.
    pub sources: Vec<Source>,
    /// The number of threads that the action may use.
    pub threads: usize,
    /// If set, the action computes from scratch, without memos and checkpoints of earlier runs.
    #[serde(default)]
    pub fresh: bool,
    /// The log file of an external program; kept if the program fails.
    pub log: PathBuf,
    /// The upstream store for read-through.
    #[serde(default)]
    pub upstream: Option<WorkerSettings>,
}

impl Job {
    /// Opens the job's store, with its upstream store.
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
        /// The kind's name.
        name: String,
        /// The version of the kind's implementation.
        version: u32,
        /// The stage's configuration, with defaults filled in.
        config: Settings,
    },
    /// An external program. It is never sent to a worker, because it has processes of its own.
    #[serde(skip)]
    Command(Box<Program>),
}

/// An external program, with what a run adds to its stage's definition.
#[derive(Clone, Debug)]
pub struct Program {
    /// The stage's command.
    pub command: Arc<Command>,
    /// The environment variables added to those that every program receives: `env:`, and the values of the
    /// stage's secrets.
    pub env: BTreeMap<String, String>,
    /// The requested isolation: the stage's, or the user's default.
    pub isolation: Isolation,
    /// The action key of the same stage without inputs, which is part of the keys of its memos.
    pub code: ActionKey,
    /// The program's memory limit in bytes.
    pub memory: Option<u64>,
    /// The variables of the engine's environment by which it finds programs and containers; they are passed
    /// to no program.
    pub host_env: BTreeMap<String, String>,
    /// The directory of the pipeline, for hints.
    pub base: PathBuf,
}

/// The result of an action.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// The action's output artifacts, by name.
    pub outputs: Outputs,
    /// The action's log.
    pub log: Option<BlobRef>,
    /// Peak resident memory in bytes, if known.
    pub peak_memory: Option<u64>,
    /// The numerics class of the outputs, if it is not the CPU's.
    #[serde(default)]
    pub numerics_class: Option<String>,
    /// The isolation of an external program.
    #[serde(default)]
    pub isolation: Option<String>,
    /// The memory limit of an external program in bytes, if it has one and it is enforced.
    #[serde(default)]
    pub memory_limit: Option<u64>,
    /// The programs that an external program and its family executed, if they were observed.
    #[serde(default)]
    pub executed: Option<Vec<PathBuf>>,
    /// The state of the upstream store when the worker exits.
    #[serde(default)]
    pub upstream: WorkerReport,
}

/// The job's kind, for messages.
impl JobWork {
    /// The stage kind; [`RUN`] for an external program.
    pub fn kind(&self) -> &str {
        match self {
            Self::Kind { name, .. } => name,
            Self::Command(_) => RUN,
        }
    }
}
