//! The ends of a job on a cluster, in the same words for every engine.

use runner_engine::executor::Done;
use stages_core::StageError;

/// The end of one attempt to run a job.
#[derive(Clone, Debug)]
pub enum End {
    /// It succeeded.
    Done(Box<Done>),
    /// The stage itself failed.
    Failed(StageError),
    /// The cluster's time limit ended it.
    TimeLimit,
    /// It needed more memory than it had requested.
    OutOfMemory,
    /// The cluster took its node for another job.
    Preempted,
    /// Its node failed.
    NodeFailed,
    /// Somebody other than this run cancelled it: the user, where the cluster tells.
    Cancelled {
        /// The user.
        by: Option<String>,
    },
    /// The cluster does not know it any more, and it left no result.
    Vanished,
    /// Its node could not start it: the node does not see the store or the program, with the reason.
    NoStore(String),
    /// The store or the disk of its node failed.
    Machine(StageError),
    /// It ended without a result: its exit status, and the last lines of its output.
    Died(String),
    /// Its outputs have not become visible here: a description of what is missing.
    Unseen(String),
    /// The cluster does not accept it.
    Refused(StageError),
    /// The task that should have run it ended before it started.
    NotStarted,
    /// This run stopped it.
    Interrupted,
}

/// The end of an attempt, with the place where it ran.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its end.
    pub end: End,
    /// The engine's name of the job; empty if it has none yet.
    pub job: String,
    /// The node, if known.
    pub node: Option<String>,
    /// The first and the last step of progress that it reported.
    pub steps: Option<(u64, u64)>,
}

impl Ended {
    /// An end without a place.
    pub fn nowhere(end: End) -> Self {
        Self {
            end,
            job: String::new(),
            node: None,
            steps: None,
        }
    }

    /// The job and its node, for messages.
    pub fn place(&self) -> String {
        let job = match self.job.as_str() {
            "" => "its job".to_owned(),
            job => format!("job {job}"),
        };
        match &self.node {
            Some(node) => format!("{job} on {node}"),
            None => job,
        }
    }
}
