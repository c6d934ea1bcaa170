//! The engine: looks stages up, runs what is not in the store, and says what happens.
//!
//! One thread, the coordinator, keeps all state and puts everything in order; each running action has a thread that talks to
//! its executor and sends the coordinator messages. An action key is known only when the digests of its inputs are, so planning
//! and execution interleave: a stage whose inputs are known is looked up at once, and one that ran again to the same bytes
//! leaves all that follows cached.
//!
//! When a stage fails, what depends on it is skipped. With `keep_going` everything else goes on; without, nothing new starts,
//! and what is running ends, its results kept.

mod action;
mod compare;
mod coordinator;
mod event;
mod plan;
mod prepare;
mod resources;

pub use compare::{Nearest, Parts};
pub use coordinator::run;
pub use event::{Event, RunStatus, StageStatus, Stamped, timestamp};
pub use plan::{Planned, Prediction, plan};
pub use prepare::{Prepared, prepare};

use cache::{ActionKey, Artifact, ArtifactDigest, Hit, HitCache, Store};
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
    /// What the last run of this kind ended with: looked at before the records are.
    pub recent: Arc<HitCache>,
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

/// How a run went.
#[derive(Clone, Debug)]
pub struct Summary {
    /// How it ended.
    pub status: RunStatus,
    /// Whether what failed was the store or the machine.
    pub machine_failed: bool,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// How each stage ended, in order.
    pub stages: Vec<(String, StageStatus)>,
    /// The results of those that are cached or ran.
    pub hits: Vec<(ActionKey, Hit)>,
}

impl Summary {
    /// How many stages ended so.
    pub fn count(&self, status: StageStatus) -> usize {
        self.stages.iter().filter(|(_, found)| *found == status).count()
    }
}

/// Which of these artifacts have a manifest or a file that is missing or damaged.
pub(crate) fn damaged(store: &Store, digests: impl IntoIterator<Item = ArtifactDigest>) -> Vec<ArtifactDigest> {
    let sound = |artifact: &Artifact| artifact.entries.iter().all(|entry| store.blob(entry.blob).is_ok());
    digests
        .into_iter()
        .filter(|&digest| !store.artifact(digest).is_ok_and(|artifact| sound(&artifact)))
        .collect()
}
