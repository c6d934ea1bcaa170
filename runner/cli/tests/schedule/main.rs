//! Scheduled pipelines by the real binary: nights, timers, and a year in fast-forward.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod champions;
mod commands;
mod nights;
mod paper;
mod timers;
mod year;

use runner_testkit::{Ended, Project, runner};
