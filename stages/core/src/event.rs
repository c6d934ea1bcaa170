//! The events of a running stage. Reporters show and store them; the stage does not depend on reporters.

use serde::{Deserialize, Deserializer, Serialize};

/// An event that a running stage emits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum StageEvent {
    /// The stage's progress. `total` is absent where it is unknown.
    Progress {
        /// The work done so far, in the stage's own unit.
        done: u64,
        /// The total amount of work.
        total: Option<u64>,
        /// The current task, in a few words, such as `pricing SPX 2019-05`.
        message: String,
    },
    /// A metric, with cleanrl's names for training (`charts/episodic_return`).
    Metric {
        /// The metric's name.
        name: String,
        /// The step the value belongs to.
        step: u64,
        /// The metric's value; `null` in JSON if it is not finite.
        #[serde(deserialize_with = "or_nan")]
        value: f64,
    },
    /// The stage's use of the machine.
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
        /// The isolation in force: `namespaces`, `landlock`, `seatbelt`, `container` or `none`.
        isolation: String,
        /// True if the program can reach the network.
        network: bool,
        /// The program's memory limit in bytes, if there is one and it is enforced.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        memory: Option<u64>,
    },
    /// A warning: the result may not be what the key says.
    Warning {
        /// The warning, a lowercase fragment.
        message: String,
        /// A hint at the remedy.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
}

fn or_nan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// A receiver of a stage's events.
pub trait EventSink: Send + Sync {
    /// Handles one event; must not block for long.
    fn emit(&self, event: StageEvent);
}

/// An event sink that drops every event.
pub struct Silent;

impl EventSink for Silent {
    fn emit(&self, _: StageEvent) {}
}
