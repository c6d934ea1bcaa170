//! `runner schedule`.

mod cron;
mod install;
mod launchd;
mod run_due;
mod show;
mod systemd;
mod unit;

use crate::args::Settings;
use crate::complete::{candidates, completed};
use crate::session::{Session, folder_of};
use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use install::TimerArgs;
use runner_engine::{Failure, exit};
use runner_history::schedule::{Clock, NightLog, SimulatedClock, SystemClock, names};
use runner_pipeline::Scheduled;
use std::path::PathBuf;

/// Run pipelines on the nights of their schedules; install timers.
#[derive(Subcommand, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner schedule next nightly.yaml
  runner schedule install nightly.yaml
  runner schedule run-due nightly.yaml
  runner schedule list
  runner schedule log nightly.yaml --last 30")]
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
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ScheduledArgs {
    /// The pipeline files [default: those that have nights in this home].
    #[arg(value_name = "PIPELINE", add = completed(candidates::pipelines))]
    pub pipelines: Vec<PathBuf>,
    /// Act as if it were this instant [default: now].
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    pub now: Option<DateTime<Utc>>,
}

/// Parses an ISO 8601 instant; without an offset, it is in UTC.
fn instant(text: &str) -> Result<DateTime<Utc>, String> {
    let micros = datasets::parse_instant(text);
    micros
        .and_then(DateTime::from_timestamp_micros)
        .ok_or_else(|| "expected an instant, such as `2026-11-25T23:30:00Z`".to_owned())
}

pub(crate) fn schedule(session: &Session, command: &ScheduleCommand) -> Result<u8, Failure> {
    let done = |()| exit::DONE;
    match command {
        ScheduleCommand::Next(args) => show::next(session, args).map(done),
        ScheduleCommand::List(args) => show::list(session, args).map(done),
        ScheduleCommand::Log(args) => show::log(session, args).map(done),
        ScheduleCommand::RunDue(args) => run_due::run_due(session, args),
        ScheduleCommand::Install(args) => install::install(session, args).map(done),
        ScheduleCommand::Uninstall(args) => install::uninstall(session, args).map(done),
    }
}

/// A pipeline with a schedule.
struct Entry {
    /// The absolute path of the file.
    file: PathBuf,
    /// The directory of the pipeline's store and history.
    home: PathBuf,
    scheduled: Scheduled,
}

impl Entry {
    fn of(session: &Session, file: PathBuf) -> Result<Self, Failure> {
        let scheduled = session.scheduled(&file, &Settings::default())?;
        Ok(Self {
            home: session.home(folder_of(&session.current, &file).as_deref()),
            file,
            scheduled,
        })
    }

    fn log(&self) -> Result<NightLog, Failure> {
        NightLog::read(&self.home, &self.scheduled.name)
    }
}

/// The pipelines that were named, or else those that have nights in the home.
fn entries(session: &Session, args: &ScheduledArgs) -> Result<Vec<Entry>, Failure> {
    let mut files: Vec<PathBuf> = args.pipelines.iter().map(|file| session.current.join(file)).collect();
    if files.is_empty() {
        let home = session.home(None);
        for name in names(&home)? {
            files.extend(NightLog::read(&home, &name)?.file().map(ToOwned::to_owned));
        }
        if files.is_empty() {
            return Err(
                Failure::usage(format!("no schedule has nights in `{}`", home.display()))
                    .hint("name the pipelines: `runner schedule next nightly.yaml`"),
            );
        }
    }
    files.into_iter().map(|file| Entry::of(session, file)).collect()
}

/// The machine's clock, or a clock that stands still at the given instant.
fn clock(args: &ScheduledArgs) -> Box<dyn Clock> {
    match args.now {
        Some(now) => Box::new(SimulatedClock::new(now)),
        None => Box::new(SystemClock),
    }
}
