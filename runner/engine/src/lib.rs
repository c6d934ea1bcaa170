//! The engine: looks stages up, runs what is not in the store, and says what happens.
//!
//! One thread, the scheduler, keeps all state and puts everything in order; each running action has a thread that talks to
//! its executor and sends the scheduler messages. An action key is known only when the digests of its inputs are, so planning
//! and execution interleave: a stage whose inputs are known is looked up at once, and one that ran again to the same bytes
//! leaves all that follows cached.
//!
//! When a stage fails, what depends on it is skipped. With `keep_going` everything else goes on; without, nothing new starts,
//! and what is running ends, its results kept.

mod action;
mod event;
pub mod executor;
pub mod exit;
mod explain;
mod failure;
pub mod key;
mod options;
mod plan;
mod prepare;
mod reporter;
mod resources;
mod run_pipeline;
mod scheduler;
mod summary;
pub mod text;

pub use event::{Event, RunStatus, StageStatus, Stamped, timestamp};
pub use explain::{Nearest, Parts};
pub use failure::Failure;
pub use options::{Control, Options, Past, Run};
pub use plan::{Planned, Prediction, plan};
pub use prepare::{Prepared, prepare};
pub use reporter::{Pace, Reporter};
pub use run_pipeline::{Outcome, StoreSession, run_pipeline};
pub use scheduler::run;
pub use summary::Summary;
