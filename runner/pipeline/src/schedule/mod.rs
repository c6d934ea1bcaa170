//! The schedule of a pipeline: the block `schedule:` of its file.

mod cron;
mod model;
mod read;

pub use cron::Cron;
pub use model::{CatchUp, NightDates, Schedule, Scheduled, Then, WaitFor, When};
pub(crate) use read::{EVERY_DAY, Written, params, read};
