//! The protocol between the engine and a worker: JSON lines over the worker's standard input and output.
//!
//! The engine writes the [`Job`](super::Job), optionally followed by [`STOP`]. End of file on the worker's
//! standard input means that its parent has exited, and the worker exits too.

use super::job::Done;
use cache::WorkerReport;
use serde::{Deserialize, Serialize};
use stages_core::{StageError, StageEvent};

/// Requests a worker to stop.
pub const STOP: &str = "stop";

/// A message of a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
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
    /// The message of a stage's event.
    pub fn event(event: StageEvent) -> Self {
        match event {
            StageEvent::Metric { name, step, value } => Self::Metric(name, step, value.to_bits()),
            event => Self::Event(event),
        }
    }

    /// The message as a line of JSON, with the newline.
    pub fn to_line(&self) -> String {
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }

    /// Parses a line, with or without its newline; `None` if it is no message.
    pub fn parse(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    /// The stage's event in the message, if it is one.
    pub fn into_event(self) -> Option<StageEvent> {
        match self {
            Self::Event(event) => Some(event),
            Self::Metric(name, step, bits) => Some(StageEvent::Metric {
                name,
                step,
                value: f64::from_bits(bits),
            }),
            Self::Upstream(_) | Self::Done(_) | Self::Failed(_) => None,
        }
    }
}
