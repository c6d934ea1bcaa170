//! The scheduled pipelines that a command is about.

use crate::complete::{candidates, completed};
use crate::project::Settings;
use crate::session::{Session, folder_of};
use chrono::{DateTime, Utc};
use clap::Args;
use runner_engine::Failure;
use runner_history::schedule::{Clock, NightLog, SimulatedClock, SystemClock, names};
use runner_pipeline::Scheduled;
use std::path::PathBuf;

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
pub(super) fn instant(text: &str) -> Result<DateTime<Utc>, String> {
    let micros = datasets::parse_instant(text);
    micros
        .and_then(DateTime::from_timestamp_micros)
        .ok_or_else(|| "expected an instant, such as `2026-11-25T23:30:00Z`".to_owned())
}

/// A pipeline with a schedule.
pub(super) struct Entry {
    /// The absolute path of the file.
    pub file: PathBuf,
    /// The directory of the pipeline's store and history.
    pub home: PathBuf,
    pub scheduled: Scheduled,
}

impl Entry {
    pub(super) fn of(session: &Session, file: PathBuf) -> Result<Self, Failure> {
        let scheduled = session.scheduled(&file, &Settings::default())?;
        Ok(Self {
            home: session.home(folder_of(&session.current, &file).as_deref()),
            file,
            scheduled,
        })
    }

    pub(super) fn log(&self) -> Result<NightLog, Failure> {
        NightLog::read(&self.home, &self.scheduled.name)
    }
}

/// The pipelines that were named, or else those that have nights in the home.
pub(super) fn entries(session: &Session, args: &ScheduledArgs) -> Result<Vec<Entry>, Failure> {
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
pub(super) fn clock(args: &ScheduledArgs) -> Box<dyn Clock> {
    clock_at(args.now)
}

/// The machine's clock, or a clock that stands still at `now`.
pub(crate) fn clock_at(now: Option<DateTime<Utc>>) -> Box<dyn Clock> {
    match now {
        Some(now) => Box::new(SimulatedClock::new(now)),
        None => Box::new(SystemClock),
    }
}
