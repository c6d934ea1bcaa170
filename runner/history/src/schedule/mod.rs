//! The nights of scheduled pipelines: when they are due, what state they are in, and the loop that runs them.
//!
//! A night is one run of a pipeline that its `schedule:` requests, named by its local date (or date and time,
//! if a day has several nights). The run records which night it belongs to; `HOME/schedule/NAME.jsonl` has a
//! line for each attempt, and for nights without a run: those that were skipped, or whose data was late.

mod clock;
mod due;
mod night;
mod night_log;
mod ready;
mod scheduler;

pub use clock::{Clock, SimulatedClock, SystemClock};
pub use due::{Due, DueTimes};
pub use night::{Night, NightStatus};
pub use night_log::{NightLog, names};
pub use ready::Awaited;
pub use scheduler::{
    Backlog, CATCH_UP_DAYS, FIRST_CATCH_UP, Outcome, Ran, RunEnd, Scheduler, Work, backlog, skip,
};
