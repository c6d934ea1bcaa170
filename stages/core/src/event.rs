//! What a running stage says. Whoever shows or stores it is a reporter that the stage does not know.

use serde::{Deserialize, Serialize};

/// Something that a stage says while it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum StageEvent {
    /// How far it is. `total` is absent where it is not known.
    Progress {
        /// Done so far, in the stage's own unit.
        done: u64,
        /// All there is to do.
        total: Option<u64>,
        /// What it is doing, in a few words, such as `pricing SPX 2019-05`.
        message: String,
    },
    /// A number to follow, with cleanrl's names for training (`charts/episodic_return`).
    Metric {
        /// Its name.
        name: String,
        /// The step it belongs to.
        step: u64,
        /// Its value.
        value: f64,
    },
    /// What it takes of the machine.
    Usage {
        /// Processor time so far, in seconds.
        cpu_seconds: f64,
        /// Resident memory now, in bytes.
        memory: u64,
    },
    /// A line for the log.
    Log {
        /// The line.
        line: String,
    },
    /// What was found in the memo cache: `hits` of `total` sub-computations.
    Memo {
        /// Found.
        hits: u64,
        /// Asked for.
        total: u64,
    },
}

/// Takes a stage's events.
pub trait EventSink: Send + Sync {
    /// Takes one event; must not block for long.
    fn emit(&self, event: StageEvent);
}

/// Drops every event.
pub struct Silent;

impl EventSink for Silent {
    fn emit(&self, _: StageEvent) {}
}
