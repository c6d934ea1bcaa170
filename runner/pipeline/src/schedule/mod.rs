//! The schedule of a pipeline: the block `schedule:` of its file.

mod cron;
mod model;
mod read;

pub use cron::Cron;
pub(crate) use model::EVERY_DAY;
pub use model::{CatchUp, Keep, NightDates, Schedule, Scheduled, Then, WaitFor, When};
pub(crate) use read::{params, read};
