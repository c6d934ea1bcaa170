//! Arguments of `runner schedule`.

use super::values::age;
use chrono::{DateTime, Utc};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Subcommand, Clone, Debug)]
pub(crate) enum ScheduleCommand {
    /// Print the next nights of pipelines, in local time and UTC.
    #[command(after_help = "\
Examples:
  runner schedule next nightly.yaml
  runner schedule next nightly.yaml --count 5 --now 2026-03-06T00:00:00Z --json")]
    Next(NextArgs),
    /// List the scheduled pipelines of this home.
    ///
    /// Their schedule, their last night, the next one, and the installed timer.
    #[command(after_help = "\
Examples:
  runner schedule list
  runner schedule list nightly.yaml weekly.yaml --json")]
    List(ScheduledArgs),
    /// Run the nights that are due and not done, in order, and exit.
    ///
    /// A night that is done is not run again; missed nights are made up for as `catch_up` says; nights that
    /// failed, or whose data was late, are run again. Where another process runs the nights of a pipeline, it
    /// says so and exits. Exit codes: 0 if nothing is left to do, 1 if a night failed or its data is late.
    #[command(after_help = "\
Examples:
  runner schedule run-due nightly.yaml
  runner schedule run-due nightly.yaml --retry-after 1h
  runner schedule run-due nightly.yaml --now 2026-11-27T23:30:00Z    # a rehearsal: does not wait")]
    RunDue(RunDueArgs),
    /// Install a timer that calls `run-due`, and show it first.
    ///
    /// Systemd user timers, lines of the crontab, or launchd agents.
    #[command(after_help = "\
Examples:
  runner schedule install nightly.yaml
  runner schedule install nightly.yaml --with cron --yes")]
    Install(TimerArgs),
    /// Remove what `install` wrote.
    #[command(after_help = "\
Example:
  runner schedule uninstall nightly.yaml --with cron --yes")]
    Uninstall(TimerArgs),
    /// Print the history of nights: due, started, ended, status, run, why.
    #[command(after_help = "\
Examples:
  runner schedule log nightly.yaml
  runner schedule log nightly.yaml --last 400 --json")]
    Log(NightsArgs),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ScheduledArgs {
    /// The pipeline files [default: those that have nights in this home].
    #[arg(value_name = "PIPELINE")]
    pub pipelines: Vec<PathBuf>,
    /// Act as if it were this instant [default: now].
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    pub now: Option<DateTime<Utc>>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct NextArgs {
    #[command(flatten)]
    pub scheduled: ScheduledArgs,
    /// The number of nights of each pipeline.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub count: usize,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct NightsArgs {
    #[command(flatten)]
    pub scheduled: ScheduledArgs,
    /// The number of nights of each pipeline.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub last: usize,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct RunDueArgs {
    #[command(flatten)]
    pub scheduled: ScheduledArgs,
    /// Run a night that failed or was late again only this long after it ended: for timers that call this
    /// every few minutes.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = age)]
    pub retry_after: Duration,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct TimerArgs {
    /// The pipeline files.
    #[arg(value_name = "PIPELINE", required = true)]
    pub pipelines: Vec<PathBuf>,
    /// The service that calls `run-due` [default: systemd where it runs, launchd on macOS, else cron].
    #[arg(long = "with", value_enum, value_name = "SERVICE")]
    pub service: Option<Installer>,
    /// Ask nothing.
    #[arg(short, long)]
    pub yes: bool,
}

/// A service that starts programs at times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Installer {
    /// User timers of systemd, persistent and in the schedule's time zone.
    Systemd,
    /// A line of the user's crontab, every five minutes: cron knows no other time zones, and forgets what it
    /// missed.
    Cron,
    /// An agent of launchd, every five minutes.
    Launchd,
}

/// An instant of ISO 8601; without an offset, in UTC.
fn instant(text: &str) -> Result<DateTime<Utc>, String> {
    let micros = datasets::parse_instant(text);
    micros
        .and_then(DateTime::from_timestamp_micros)
        .ok_or_else(|| "expected an instant, such as `2026-11-25T23:30:00Z`".to_owned())
}
