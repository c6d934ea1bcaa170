//! The events of a running stage. Reporters, on which the stage does not depend, show and store them.

use serde::{Deserialize, Serialize};

/// An event that a running stage emits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum StageEvent {
    /// Its progress. `total` is absent where it is unknown.
    Progress {
        /// Done so far, in the stage's own unit.
        done: u64,
        /// The total amount of work.
        total: Option<u64>,
        /// The current task, in a few words, such as `pricing SPX 2019-05`.
        message: String,
    },
    /// A metric, with cleanrl's names for training (`charts/episodic_return`).
    Metric {
        /// Its name.
        name: String,
        /// The step it belongs to.
        step: u64,
        /// Its value.
        value: f64,
    },
    /// Its use of the machine.
    Usage {
        /// CPU time so far, in seconds.
        cpu_seconds: f64,
        /// Resident memory now, in bytes.
        memory: u64,
    },
    /// A line for the log.
    Log {
        /// The line.
        line: String,
    },
    /// The hits of the memo cache: `hits` of `total` sub-computations.
    Memo {
        /// The number of hits.
        hits: u64,
        /// The number of look-ups.
        total: u64,
    },
    /// The isolation of an external program that is about to start.
    Isolation {
        /// The isolation in force: `namespaces`, `landlock`, `container` or `none`.
        isolation: String,
        /// True if it reaches the network.
        network: bool,
        /// The limit of its memory in bytes, if it has one and it is enforced.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        memory: Option<u64>,
    },
    /// A warning: the result may not be what the key says.
    Warning {
        /// The warning, a lowercase fragment.
        message: String,
        /// A hint at its solution.
        hint: Option<String>,
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
