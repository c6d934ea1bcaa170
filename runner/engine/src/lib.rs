//! The engine: looks stages up, runs those that are not in the store, and emits events.
//!
//! One thread, the scheduler, owns all state and serialises all changes; each running action has a thread
//! that communicates with its executor and sends messages to the scheduler. An action key depends on the
//! digests of the inputs, so planning and execution interleave: a stage is looked up as soon as its inputs
//! are known, and a stage that reran to the same bytes leaves all its dependents cached.
//!
//! If a stage fails, its dependents are skipped. With `keep_going` all other stages continue; otherwise no
//! new stage starts, and running stages complete and keep their results.

mod action;
mod alone;
mod collect;
mod cost;
mod event;
pub mod executor;
pub mod exit;
mod explain;
mod failure;
mod grow;
pub mod key;
mod options;
mod placement;
mod plan;
mod prepare;
mod remote_sources;
mod reporter;
mod resources;
mod row;
mod run_pipeline;
mod scheduler;
mod summary;
pub mod text;
mod trials;

pub use alone::run_alone;
pub use collect::{Collected, Made, Progress};
pub use cost::CostWarning;
pub use event::{DecisionEvent, Event, LookaheadVerdict, RunStatus, StageStatus, Stamped, stamp, timestamp};
pub use explain::{Nearest, Parts};
pub use failure::{Failure, no_temporary_directory, no_thread};
pub use grow::{Ended, Grow, Growth};
pub use options::{Control, Options, Past, Run};
pub use plan::{Planned, PlannedJob, Prediction, plan};
pub use prepare::{Prepared, prepare, sources};
pub use remote_sources::{described as described_source, fetch as fetch_sources};
pub use reporter::{Pace, Reporter};
pub use row::Cell;
pub use run_pipeline::{Outcome, run_pipeline};
pub use scheduler::run;
pub use stages_core::StageEvent;
pub use summary::Summary;
pub use trials::{TestRange, Trial, count_trials, trials};
