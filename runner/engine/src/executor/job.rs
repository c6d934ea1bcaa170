//! The job of an action, its result, and the trait of executors.

use super::limits::Limits;
use crate::key::RUN;
use cache::{ActionKey, ArtifactDigest, BlobRef, OpenUpstream, Store, WorkerReport, WorkerSettings};
use runner_pipeline::{Command, Isolation};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stages_core::{EventSink, Outputs, Settings, Source, StageError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Runs actions.
pub trait Executor: Send + Sync {
    /// Runs an action to completion. Blocks.
    fn run(&self, job: &Job, events: &Arc<dyn EventSink>, limits: &Limits) -> Result<Done, StageError>;

    /// Runs an action of which `parts` runs parts, if its kind asks for that. Blocks.
    fn run_with_parts(
        &self,
        job: &Job,
        events: &Arc<dyn EventSink>,
        limits: &Limits,
        parts: &dyn RunPart,
    ) -> Result<Done, StageError> {
        let _ = parts;
        self.run(job, events, limits)
    }
}

/// Runs parts of an action's work on other machines.
pub trait RunPart: Sync {
    /// Runs a part to completion. Blocks.
    fn run(&self, part: Value) -> Result<(), StageError>;
}

/// The properties of an executor that runs its jobs on other machines.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    /// The maximum number of concurrent jobs.
    pub jobs: usize,
    /// The number of threads of a job whose stage requests none.
    pub threads: usize,
    /// The memory of a job whose stage requests none, in bytes; `None` leaves it to the engine.
    pub memory: Option<u64>,
    /// The run time of a job whose stage requests none; `None` leaves it to the engine.
    pub time: Option<Duration>,
    /// A stage that is expected to take less than this is not worth a job: it runs on this machine, unless it
    /// names the executor itself.
    pub small: Duration,
    /// The store that the jobs open.
    pub store: JobStore,
}

/// The store that a job opens.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobStore {
    /// The engine's, on the engine's machine.
    #[default]
    Here,
    /// The engine's, which several machines share.
    Shared {
        /// The time after which the locks of a silent machine are taken over.
        takeover: Duration,
    },
    /// One on the node's own disk, with the remote store behind it.
    Node {
        /// Its directory; by default in the node's directory for temporary files.
        dir: Option<PathBuf>,
        /// Its maximum size in bytes after a job.
        bound: u64,
    },
}

impl JobStore {
    /// The store of a job on the engine's machine.
    pub(crate) fn beside(engine: &Store) -> Self {
        match engine.takeover() {
            Some(takeover) => Self::Shared { takeover },
            None => Self::Here,
        }
    }
}

/// The resources that a job requests of a machine, besides its threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The memory in bytes.
    pub memory: Option<u64>,
    /// The number of GPUs.
    pub gpus: u32,
    /// The run time: an executor may end the job at its end, and the job then goes on from its checkpoint.
    pub time: Option<Duration>,
    /// The stage's time limit: a stage that runs for longer fails. The time in a queue does not count.
    pub timeout: Option<Duration>,
    /// The run time expected from past runs, in seconds.
    pub expected_seconds: Option<f64>,
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
    /// The store that the job opens.
    #[serde(default)]
    pub store: JobStore,
    /// The resources that it requests.
    #[serde(default)]
    pub request: Request,
    /// The work to do.
    pub work: JobWork,
    /// The input artifacts, by port.
    pub inputs: BTreeMap<String, Vec<ArtifactDigest>>,
    /// The files outside the store that the action reads.
    pub sources: Vec<Source>,
    /// The number of threads that the action may use.
    pub threads: usize,
    /// The part of the stage's work that the job is; `None` for the whole stage.
    #[serde(default)]
    pub part: Option<Value>,
    /// If set, the worker may give parts of its work to the engine.
    #[serde(default)]
    pub has_parts: bool,
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
    pub(super) fn open_store(&self, open_upstream: OpenUpstream) -> cache::Result<Store> {
        let store = match &self.store {
            JobStore::Here => Store::open(&self.home)?,
            JobStore::Shared { takeover } => Store::open_shared(&self.home, *takeover)?,
            JobStore::Node { dir, .. } => Store::open(&node_dir(dir.as_deref()))?,
        };
        match &self.upstream {
            Some(settings) => {
                let upstream = open_upstream(&store, settings)?;
                Ok(store.with_upstream(upstream))
            }
            None => Ok(store),
        }
    }
}

/// The directory of a node's own store: `dir`, or one of the user in the directory for temporary files.
pub fn node_dir(dir: Option<&Path>) -> PathBuf {
    let own = || std::env::temp_dir().join(format!("runner-{}", rustix::process::getuid().as_raw()));
    dir.map_or_else(own, Path::to_owned)
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
    /// An external program. It is never sent to a worker of this machine, because it has processes of its
    /// own.
    Command(Box<Program>),
    /// The description of the machine that runs the job; no stage, and in no record.
    Probe,
}

/// An external program, with what a run adds to its stage's definition.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Program {
    /// The stage's command.
    #[serde(with = "whole_command")]
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

/// A command with what its record leaves out.
mod whole_command {
    use super::{Arc, Command};
    use runner_pipeline::Unrecorded;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(command: &Command, serializer: S) -> Result<S::Ok, S::Error> {
        (command, command.unrecorded()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<Command>, D::Error> {
        let (command, unrecorded) = <(Command, Unrecorded)>::deserialize(deserializer)?;
        Ok(Arc::new(command.with(unrecorded)))
    }
}

/// The machine on which an action ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// The executor's name in `config.yaml`.
    pub executor: String,
    /// The executor's own name of the job.
    pub job: String,
    /// The host.
    pub host: String,
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
    /// The run time in seconds, without the time in a queue; `None` if that of the executor's call.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// The machine, if it is not the engine's.
    #[serde(default)]
    pub place: Option<Place>,
}

/// The job's kind, for messages.
impl JobWork {
    /// The stage kind; [`RUN`] for an external program.
    pub fn kind(&self) -> &str {
        match self {
            Self::Kind { name, .. } => name,
            Self::Command(_) => RUN,
            Self::Probe => "probe",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With locks of another kind, two machines could have one directory of checkpoints.
    #[test]
    fn a_job_beside_the_engine_locks_as_the_engine_does() {
        let home = tempfile::tempdir().unwrap();
        let takeover = Duration::from_secs(7);
        let store = Store::open_shared(home.path(), takeover).unwrap();
        assert_eq!(JobStore::beside(&store), JobStore::Shared { takeover });
        let store = Store::open(&home.path().join("local")).unwrap();
        assert_eq!(JobStore::beside(&store), JobStore::Here);
    }
}
