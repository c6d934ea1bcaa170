//! `runner schedule`.

mod cron;
mod entry;
mod install;
mod launchd;
mod run_due;
mod show;
mod skip;
mod systemd;
mod unit;

pub(crate) use entry::clock_at;

use crate::session::Session;
use clap::Subcommand;
use entry::ScheduledArgs;
use install::TimerArgs;
use runner_engine::{Failure, exit};

/// Run pipelines on the nights of their schedules; install timers.
#[derive(Subcommand, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner schedule next nightly.yaml
  runner schedule install nightly.yaml
  runner schedule run-due nightly.yaml
  runner schedule list
  runner schedule log nightly.yaml --last 30
  runner schedule skip nightly.yaml 2025-01-09 --why \"day of mourning\"")]
pub(crate) enum ScheduleCommand {
    Next(show::NextArgs),
    /// List the scheduled pipelines of this home.
    ///
    /// Their schedule, their last night, the next one, and the installed timer.
    #[command(after_help = "\
Examples:
  runner schedule list
  runner schedule list nightly.yaml weekly.yaml --json")]
    List(ScheduledArgs),
    RunDue(run_due::RunDueArgs),
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
    Log(show::NightsArgs),
    #[command(alias = "close")]
    Skip(skip::SkipArgs),
}

pub(crate) fn schedule(session: &Session, command: &ScheduleCommand) -> Result<u8, Failure> {
    let done = |()| exit::DONE;
    match command {
        ScheduleCommand::Next(args) => show::next(session, args).map(done),
        ScheduleCommand::List(args) => show::list(session, args).map(done),
        ScheduleCommand::Log(args) => show::log(session, args).map(done),
        ScheduleCommand::Skip(args) => skip::skip(session, args).map(done),
        ScheduleCommand::RunDue(args) => run_due::run_due(session, args),
        ScheduleCommand::Install(args) => install::install(session, args).map(done),
        ScheduleCommand::Uninstall(args) => install::uninstall(session, args).map(done),
    }
}
