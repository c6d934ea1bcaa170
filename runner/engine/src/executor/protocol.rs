//! What the engine and a worker say to each other: JSON lines over the worker's standard input and output.
//!
//! The engine writes the [`Job`](super::Job), and then perhaps [`STOP`]. When the worker's input ends, its parent is gone, and
//! it ends too.

use super::job::Done;
use cache::WorkerReport;
use serde::{Deserialize, Serialize};
use stages_core::error::Cause;
use stages_core::{StageError, StageEvent};

/// Asks a worker to stop.
pub(crate) const STOP: &str = "stop";

/// What a worker says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Message {
    /// Something that its stage said, other than a metric.
    Event(StageEvent),
    /// A metric: its name, step and the bits of its value, which JSON could not hold were it not finite.
    Metric(String, u64, u64),
    /// The process group of the external program that it runs.
    Group(i32),
    /// The state of the upstream store, before its last message.
    Upstream(WorkerReport),
    /// It is done.
    Done(Done),
    /// It failed.
    Failed {
        message: String,
        hint: Option<String>,
        cause: WireCause,
    },
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WireCause {
    Failed,
    Interrupted,
    Store,
    DamagedInput,
}

impl Message {
    pub fn event(event: StageEvent) -> Self {
        match event {
            StageEvent::Metric { name, step, value } => Self::Metric(name, step, value.to_bits()),
            event => Self::Event(event),
        }
    }

    pub fn failed(err: StageError) -> Self {
        Self::Failed {
            cause: match err.cause {
                Cause::Failed => WireCause::Failed,
                Cause::Interrupted => WireCause::Interrupted,
                Cause::Store => WireCause::Store,
                Cause::DamagedInput => WireCause::DamagedInput,
            },
            message: err.message,
            hint: err.hint,
        }
    }
}

pub(crate) fn error(message: String, hint: Option<String>, cause: WireCause) -> StageError {
    let cause = match cause {
        WireCause::Failed => Cause::Failed,
        WireCause::Interrupted => Cause::Interrupted,
        WireCause::Store => Cause::Store,
        WireCause::DamagedInput => Cause::DamagedInput,
    };
    StageError { message, hint, cause }
}
