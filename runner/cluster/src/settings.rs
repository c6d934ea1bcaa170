//! The block `executors:` of `config.yaml`: from the name of an executor to its settings.

use runner_engine::executor::{Elsewhere, JobStore};
use runner_pipeline::config_file::{bytes, interval};
use serde::Deserialize;
use std::path::PathBuf;
use std::time::Duration;

/// The time after which the locks of a machine that fell silent are taken over, by default.
pub const TAKEOVER: Duration = Duration::from_secs(90);

/// The run time below which a stage is not worth a job, by default.
const SMALL: Duration = Duration::from_secs(5);

/// The time up to which short jobs share a task of Slurm, by default.
const PACK: Duration = Duration::from_secs(300);

/// The maximum number of jobs in flight that makes for several jobs in each task.
const PACKED_JOBS: usize = 1000;

/// The maximum size of a node's own store in bytes, by default.
const NODE_CACHE: u64 = 50 << 30;

/// The settings of an executor, by its `kind`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settings {
    /// `kind: slurm`.
    Slurm(Slurm),
    /// `kind: ray`.
    Ray(Ray),
}

impl Settings {
    /// The kinds.
    pub const KINDS: [&str; 2] = ["slurm", "ray"];

    /// The properties by which a run is planned.
    pub fn elsewhere(&self) -> Elsewhere {
        match self {
            Self::Slurm(slurm) => Elsewhere {
                jobs: slurm.jobs(),
                threads: slurm.threads,
                memory: slurm.memory,
                time: slurm.time,
                small: slurm.small.unwrap_or(SMALL),
                store: self.job_store(None, None),
            },
            Self::Ray(ray) => Elsewhere {
                jobs: ray.max_jobs,
                threads: ray.threads,
                memory: ray.memory,
                time: None,
                small: ray.small.unwrap_or(SMALL),
                store: self.job_store(ray.node_dir.clone(), ray.node_cache),
            },
        }
    }

    fn job_store(&self, dir: Option<PathBuf>, bound: Option<u64>) -> JobStore {
        match self.takeover() {
            Some(takeover) => JobStore::Shared { takeover },
            None => JobStore::Node {
                dir,
                bound: bound.unwrap_or(NODE_CACHE),
            },
        }
    }

    /// Checks what the fields alone cannot say.
    ///
    /// # Errors
    /// The field that is wrong, the reason, and the remedy.
    pub fn check(&self) -> Result<(), (&'static str, &'static str, &'static str)> {
        let threads = match self {
            Self::Slurm(slurm) if slurm.store == Sharing::Remote => {
                return Err((
                    "store",
                    "Slurm's nodes must see the directory of the store",
                    "write `store: shared`, and put the home on a file system that the nodes share",
                ));
            }
            Self::Slurm(slurm) => slurm.threads,
            Self::Ray(ray) => ray.threads,
        };
        match (self.max_jobs(), threads) {
            (0, _) => Err(("max_jobs", "no job could run", "write a number from 1")),
            (_, 0) => Err(("threads", "no job could run", "write a number from 1")),
            _ => Ok(()),
        }
    }

    /// The maximum number of tasks in the queue and running.
    pub fn max_jobs(&self) -> usize {
        match self {
            Self::Slurm(slurm) => slurm.max_jobs,
            Self::Ray(ray) => ray.max_jobs,
        }
    }

    /// The time after which a lock is taken over, if the nodes share the directory of the store.
    pub fn takeover(&self) -> Option<Duration> {
        let (store, takeover) = match self {
            Self::Slurm(slurm) => (slurm.store, slurm.takeover),
            Self::Ray(ray) => (ray.store, ray.takeover),
        };
        (store == Sharing::Shared).then(|| takeover.unwrap_or(TAKEOVER))
    }
}

/// The way of the nodes to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sharing {
    /// They see the same directory, on a network file system.
    Shared,
    /// By the remote store of `config.yaml`.
    Remote,
}

/// The kind, which is read before the other settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Slurm,
    Ray,
}

/// The settings of an executor on Slurm.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Slurm {
    #[serde(rename = "kind")]
    pub(crate) _kind: Kind,
    /// The partition; by default Slurm's own default.
    pub partition: Option<String>,
    /// The account that is charged.
    pub account: Option<String>,
    /// The quality of service.
    pub qos: Option<String>,
    /// The features that a node must have, as `sbatch --constraint` takes them.
    pub constraint: Option<String>,
    /// The maximum number of tasks in the queue and running.
    pub max_jobs: usize,
    /// Stages that are expected to be short are packed into one task up to this time.
    #[serde(deserialize_with = "interval")]
    pub pack: Option<Duration>,
    /// A stage that is expected to take less than this runs on the engine's machine.
    #[serde(deserialize_with = "interval")]
    pub small: Option<Duration>,
    /// The number of threads of a stage that requests none.
    pub threads: usize,
    /// The memory of a stage that requests none.
    #[serde(deserialize_with = "bytes")]
    pub memory: Option<u64>,
    /// The largest memory that is requested after a stage ran out of memory; by default what it requested.
    #[serde(deserialize_with = "bytes")]
    pub max_memory: Option<u64>,
    /// The time of a stage that requests none; by default that of the partition.
    #[serde(deserialize_with = "interval")]
    pub time: Option<Duration>,
    /// The number of times that a job is submitted again after a fault of a machine.
    pub retries: u32,
    /// Further options of `sbatch`, as they are.
    pub options: Vec<String>,
    /// The path of this program on the nodes; by default a copy in the home.
    pub program: Option<PathBuf>,
    /// The way of the nodes to the store: they see its directory.
    pub store: Sharing,
    /// The time after which the locks of a silent machine are taken over.
    #[serde(deserialize_with = "interval")]
    pub takeover: Option<Duration>,
}

impl Slurm {
    /// The time up to which short jobs share a task.
    pub fn pack(&self) -> Duration {
        self.pack.unwrap_or(PACK)
    }

    /// The number of jobs in flight: more than tasks, so that there are some to share tasks.
    fn jobs(&self) -> usize {
        match self.pack() {
            Duration::ZERO => self.max_jobs,
            _ => self.max_jobs.max(self.max_jobs.saturating_mul(4).min(PACKED_JOBS)),
        }
    }
}

impl Default for Slurm {
    fn default() -> Self {
        Self {
            _kind: Kind::Slurm,
            partition: None,
            account: None,
            qos: None,
            constraint: None,
            max_jobs: 200,
            pack: None,
            small: None,
            threads: 1,
            memory: None,
            max_memory: None,
            time: None,
            retries: 3,
            options: Vec::new(),
            program: None,
            store: Sharing::Shared,
            takeover: None,
        }
    }
}

/// The settings of an executor on Ray.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ray {
    #[serde(rename = "kind")]
    _kind: Kind,
    /// The address of the cluster, as `ray.init` takes it.
    pub address: String,
    /// The maximum number of tasks in the queue and running.
    pub max_jobs: usize,
    /// A stage that is expected to take less than this runs on the engine's machine.
    #[serde(deserialize_with = "interval")]
    pub small: Option<Duration>,
    /// The number of threads of a stage that requests none.
    pub threads: usize,
    /// The memory of a stage that requests none.
    #[serde(deserialize_with = "bytes")]
    pub memory: Option<u64>,
    /// The largest memory that is requested after a stage ran out of memory; by default what it requested.
    #[serde(deserialize_with = "bytes")]
    pub max_memory: Option<u64>,
    /// The interpreter that has Ray: a program on PATH, or a path.
    pub python: String,
    /// The path of this program on the nodes; by default it is copied there once.
    pub program: Option<PathBuf>,
    /// The number of times that a job is submitted again after a fault of a machine.
    pub retries: u32,
    /// The way of the nodes to the store.
    pub store: Sharing,
    /// The directory of a node's own store; by default in its directory for temporary files.
    pub node_dir: Option<PathBuf>,
    /// The maximum size of a node's own store.
    #[serde(deserialize_with = "bytes")]
    pub node_cache: Option<u64>,
    /// The time after which the locks of a silent machine are taken over, where the store is shared.
    #[serde(deserialize_with = "interval")]
    pub takeover: Option<Duration>,
}

impl Default for Ray {
    fn default() -> Self {
        Self {
            _kind: Kind::Ray,
            address: "auto".to_owned(),
            max_jobs: 1000,
            small: None,
            threads: 1,
            memory: None,
            max_memory: None,
            python: "python3".to_owned(),
            program: None,
            retries: 3,
            store: Sharing::Remote,
            node_dir: None,
            node_cache: None,
            takeover: None,
        }
    }
}
