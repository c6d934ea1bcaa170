//! The state of a home in a few numbers, for the navigation of every page.

use crate::site::Site;
use runner_engine::RunStatus;
use runner_history as history;
use runner_history::paper::Ledger;
use runner_history::schedule::{NightLog, NightStatus, names};
use runner_report::paper_state;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The number of runs among which running ones are looked for.
const RUNS: usize = 20;

/// The number of nights of a schedule among which failed ones are looked for.
const NIGHTS: usize = 370;

/// The age from which on the state is read again.
const FRESH: Duration = Duration::from_secs(2);

/// The state of a home.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pulse {
    pub running: usize,
    pub failed_nights: usize,
    pub halted_accounts: usize,
}

/// The state as it was read last, and when.
#[derive(Clone, Default)]
pub(crate) struct Heart(Arc<Mutex<Option<(Instant, Pulse)>>>);

/// True if a night failed, was killed, or its data was late.
pub(crate) fn is_failed(status: NightStatus) -> bool {
    matches!(status, NightStatus::Failed | NightStatus::Killed | NightStatus::Late)
}

impl Heart {
    /// The state of a site's home. What cannot be read is not counted: its own page says so.
    pub(crate) fn pulse(&self, site: &Site) -> Pulse {
        let locked = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((read, pulse)) = locked().as_mut() {
            if read.elapsed() < FRESH {
                return pulse.clone();
            }
            // Until the state is read again, other pages show the last one.
            *read = Instant::now();
        }
        let (runs, _) = history::last(&site.runs, RUNS).unwrap_or_default();
        let schedules = names(&site.home).unwrap_or_default();
        let failed = |name: &String| {
            let log = NightLog::read(&site.home, name).ok()?;
            Some(
                log.nights()
                    .rev()
                    .take(NIGHTS)
                    .filter(|night| is_failed(night.status))
                    .count(),
            )
        };
        let accounts = Ledger::names(&site.home).unwrap_or_default();
        let is_halted = |name: &&String| {
            Ledger::read(&site.home, name)
                .is_ok_and(|ledger| matches!(paper_state(&ledger), "halted" | "broken"))
        };
        let pulse = Pulse {
            running: runs.iter().filter(|run| run.status == RunStatus::Running).count(),
            failed_nights: schedules.iter().filter_map(failed).sum(),
            halted_accounts: accounts.iter().filter(is_halted).count(),
        };
        *locked() = Some((Instant::now(), pulse.clone()));
        pulse
    }
}
