//! The protocol between the engine and a worker: JSON lines over the worker's standard input and output.
//!
//! The engine writes the [`Job`](super::Job), then answers to parts, and optionally [`STOP`]. End of file on
//! the worker's standard input means that its parent has exited, and the worker exits too.

use super::job::Done;
use cache::WorkerReport;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stages_core::{StageError, StageEvent};

/// Requests a worker to stop.
pub const STOP: &str = "stop";

/// A message of a worker.
#[allow(clippy::large_enum_variant, reason = "few messages exist at a time")]
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// An event of the worker's stage, other than a metric.
    Event(StageEvent),
    /// A metric: its name, its step and the bits of its value, since JSON cannot represent non-finite values.
    Metric(String, u64, u64),
    /// A part of the stage's work, which the engine runs on another machine, and its number among the
    /// worker's parts; the engine answers with a [`Reply`].
    Part(u64, Value),
    /// The state of the upstream store, sent before the last message.
    Upstream(WorkerReport),
    /// The job succeeded.
    Done(Done),
    /// The job failed.
    Failed(StageError),
}

/// The engine's answer to a [`Message::Part`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Reply {
    /// The number of the part.
    pub part: u64,
    /// The error, if the part failed.
    pub error: Option<StageError>,
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
            Self::Part(..) | Self::Upstream(_) | Self::Done(_) | Self::Failed(_) => None,
        }
    }
}
