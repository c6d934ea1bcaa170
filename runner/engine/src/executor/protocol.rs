//! The protocol between the engine and a worker: JSON lines over the worker's standard input and output.
//!
//! The engine writes the [`Job`](super::Job), optionally followed by [`STOP`]. End of file on the worker's
//! standard input means that its parent has exited, and the worker exits too.

use super::job::Done;
use cache::WorkerReport;
use serde::{Deserialize, Serialize};
use stages_core::{StageError, StageEvent};

/// Requests a worker to stop.
pub(crate) const STOP: &str = "stop";

/// A message of a worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Message {
    /// An event of the worker's stage, other than a metric.
    Event(StageEvent),
    /// A metric: its name, its step and the bits of its value, since JSON cannot represent non-finite values.
    Metric(String, u64, u64),
    /// The state of the upstream store, sent before the last message.
    Upstream(WorkerReport),
    /// The job succeeded.
    Done(Done),
    /// The job failed.
    Failed(StageError),
}

impl Message {
    pub(super) fn event(event: StageEvent) -> Self {
        match event {
            StageEvent::Metric { name, step, value } => Self::Metric(name, step, value.to_bits()),
            event => Self::Event(event),
        }
    }
}
