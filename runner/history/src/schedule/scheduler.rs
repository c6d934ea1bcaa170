//! Runs the nights that are due.

use super::clock::Clock;
use super::due::{Due, DueTimes, date_of};
use super::night::{Night, NightStatus};
use super::night_log::{Change, Ended, NightLog, lock};
use super::ready::{Awaited, Watched};
use chrono::{DateTime, TimeDelta, Utc};
use datasets::contract::TimeOfDay;
use runner_engine::{Failure, RunStatus, exit};
use runner_pipeline::{CatchUp, Scheduled, WaitFor};
use stages_core::CancelToken;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// The longest interval between two checks for missing data, or of the clock.
const POLL: Duration = Duration::from_secs(30);

/// The time after which `catch_up: none` skips a missed night without `wait_for`.
const WINDOW: TimeDelta = TimeDelta::hours(1);

/// The number of nights that a schedule without a night makes up for unasked.
pub const FIRST_CATCH_UP: usize = 10;

/// A schedule with nights makes up unasked for those that were due within this time.
pub const CATCH_UP_DAYS: TimeDelta = TimeDelta::days(31);

/// The work of a night, provided by the caller of a [`Scheduler`].
pub trait Work {
    /// The files that a night waits for, in their current state.
    fn awaited(&mut self, due: &Due, wait_for: &WaitFor) -> Result<Vec<Awaited>, Failure>;

    /// Runs a night, and reports the run's id before its first stage. The run ends by itself after `timeout`.
    fn run(
        &mut self,
        due: &Due,
        timeout: Option<Duration>,
        started: &mut dyn FnMut(&str) -> Result<(), Failure>,
    ) -> Result<RunEnd, Failure>;

    /// Makes the decision that the schedule's `then:` requests after the successful run of a night; returns
    /// the decision in a few words.
    fn then(&mut self, due: &Due, run: &str) -> Result<String, Failure>;

    /// Removes the runs of the schedule's nights except the latest `keep`.
    fn prune(&mut self, keep: usize) -> Result<(), Failure>;

    /// Called at each change of a night.
    fn changed(&mut self, night: &Night);
}

/// The end of a night's run.
#[derive(Clone, Debug)]
pub struct RunEnd {
    /// The run's status.
    pub status: RunStatus,
    /// The reason, if the status is not [`RunStatus::Done`].
    pub why: Option<String>,
}

/// The outcome of [`Scheduler::run_due`].
#[derive(Debug)]
pub enum Ran {
    /// Another process runs the nights of this schedule.
    Busy,
    /// The nights that were due.
    Nights(Outcome),
}

/// The nights that were due.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The nights whose state changed, in the order in which they were run.
    pub nights: Vec<Night>,
    /// The number of nights that still have something left to do.
    pub open: usize,
}

/// Runs the nights of a pipeline.
pub struct Scheduler<'a> {
    /// The directory of the store and the history.
    pub home: &'a Path,
    /// The absolute path of the pipeline file.
    pub file: &'a Path,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// Cancels waiting; no further night starts.
    pub cancel: &'a CancelToken,
    /// The time after which a night that failed or was late is run again.
    pub retry_after: Duration,
}

impl Scheduler<'_> {
    /// Runs the nights that are due and not done, in order, each once. Nights that failed before are run
    /// again.
    ///
    /// # Errors
    /// When the store, the history or the machine fails; what was done so far is recorded.
    pub fn run_due(&self, scheduled: &Scheduled, work: &mut dyn Work) -> Result<Ran, Failure> {
        // Nothing is written if no night is due.
        let log = NightLog::read(self.home, &scheduled.name)?;
        let left = plan(scheduled, &log, self.clock.now());
        if log.file() == Some(self.file) && !left.iter().any(|step| self.is_ready(step, &log)) {
            return Ok(Ran::Nights(Outcome {
                nights: Vec::new(),
                open: left.len(),
            }));
        }
        let Some(_lock) = lock(self.home, &scheduled.name)? else {
            return Ok(Ran::Busy);
        };
        let mut nights = Nights {
            // Another process may have run nights before this process acquired the lock.
            log: NightLog::read(self.home, &scheduled.name)?,
            scheduler: self,
            scheduled,
            changed: Vec::new(),
        };
        nights.log.set_file(self.clock.now(), self.file)?;
        let mut tried = BTreeSet::new();
        let mut has_run = false;
        while !self.cancel.is_cancelled() {
            // A person may have skipped a night meanwhile.
            nights.log = NightLog::read(self.home, &scheduled.name)?;
            let steps = plan(scheduled, &nights.log, self.clock.now());
            let mut left = steps.into_iter().filter(|step| !tried.contains(&step.due.night));
            let step = left.find(|step| self.is_ready(step, &nights.log));
            let Some(step) = step else { break };
            tried.insert(step.due.night.clone());
            match step.skipped {
                Some(why) => nights.end(&step.due, NightStatus::Skipped, None, Ended::because(why), work)?,
                None => has_run |= nights.night(&step.due, work)?,
            }
        }
        if let Some(keep) = scheduled.schedule.keep.as_ref().filter(|_| has_run) {
            work.prune(keep.runs.get())?;
        }
        let open = plan(scheduled, &nights.log, self.clock.now()).len();
        Ok(Ran::Nights(Outcome {
            nights: nights.changed,
            open,
        }))
    }

    /// True if a night may be tried: it has not just failed.
    fn is_ready(&self, step: &Step, log: &NightLog) -> bool {
        let ended = log.get(&step.due.night).and_then(|night| night.ended);
        // A clock that was set back does not delay the retry further.
        let since = ended.map(|ended| (self.clock.now() - ended).abs());
        let required = TimeDelta::from_std(self.retry_after).unwrap_or(TimeDelta::MAX);
        since.is_none_or(|since| since >= required)
    }
}

/// Skips a night that is not settled: it is not run, or not run again. It need not be due: a day of mourning
/// is known the day before. A process that waits for the night's data, or runs nights before it, notices.
/// `file` is the absolute path of the pipeline file.
///
/// # Errors
/// If the schedule has no such night, the night is settled, is running or will not be run, or if the log
/// cannot be written.
pub fn skip(
    home: &Path,
    file: &Path,
    scheduled: &Scheduled,
    night: &str,
    why: &str,
    now: DateTime<Utc>,
) -> Result<Night, Failure> {
    let name = &scheduled.name;
    let times = DueTimes(&scheduled.schedule);
    let Some(due) = times.named(night) else {
        return Err(Failure::usage(format!("`{name}` has no night {night}")).hint(
            "`runner schedule log` lists the nights that were, `runner schedule next --count 20` the next",
        ));
    };
    // A line is added in one write, and the holder of the lock reads it before it begins another night.
    let lock = lock(home, name)?;
    let mut log = NightLog::read(home, name)?;
    let is_running = |night: &Night| night.status == NightStatus::Running;
    if lock.is_none() && log.get(night).is_some_and(is_running) {
        return Err(Failure::usage(format!("the night {night} of `{name}` is running"))
            .hint("wait for it, or stop it"));
    }
    if let Some(known) = log.get(night).filter(|known| known.status.is_settled()) {
        return Err(Failure::usage(format!(
            "the night {night} of `{name}` is {} already",
            known.status.name()
        ))
        .hint("`runner schedule log` shows its run, or its reason"));
    }
    let is_before = scheduled.schedule.from.is_some_and(|from| due.dates.date < from);
    let is_left = due.at > now || plan(scheduled, &log, now).iter().any(|step| step.due.night == night);
    if is_before || !is_left {
        return Err(
            Failure::usage(format!("the night {night} of `{name}` is not to be run"))
                .hint("it comes before the first night, or `catch_up` leaves it out"),
        );
    }
    log.set_file(now, file)?;
    let why = why.to_owned();
    log.add(now, &due, Change::Skipped { why })?;
    log.get(night)
        .cloned()
        .ok_or_else(|| Failure::usage(format!("the night {night} is not in the log")))
}

/// Nights to make up for that are more than a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// The number of nights before the latest one that were never tried and are to be run.
    pub missed: usize,
    /// The first of them.
    pub first: String,
    /// The limit.
    pub most: usize,
}

/// The nights to make up for, if they are more than `most`; without it, more than [`FIRST_CATCH_UP`] of a
/// schedule that has no nights yet, or than those of [`CATCH_UP_DAYS`] of one that has.
///
/// # Errors
/// If the log cannot be read.
pub fn backlog(
    home: &Path,
    scheduled: &Scheduled,
    most: Option<usize>,
    now: DateTime<Utc>,
) -> Result<Option<Backlog>, Failure> {
    let log = NightLog::read(home, &scheduled.name)?;
    let steps = plan(scheduled, &log, now);
    let untried = |step: &&Step| step.skipped.is_none() && log.get(&step.due.night).is_none();
    let mut missed: Vec<&Due> = steps.iter().filter(untried).map(|step| &step.due).collect();
    let latest = DueTimes(&scheduled.schedule).latest(now);
    missed.retain(|due| latest.as_ref().is_some_and(|latest| due.night < latest.night));
    let has_nights = log.nights().any(|night| !night.is_ahead);
    let most = most.unwrap_or_else(|| match has_nights {
        true => missed.iter().filter(|due| now - due.at <= CATCH_UP_DAYS).count(),
        false => FIRST_CATCH_UP,
    });
    Ok(missed.first().filter(|_| missed.len() > most).map(|first| Backlog {
        missed: missed.len(),
        first: first.night.clone(),
        most,
    }))
}

/// A night that is due and not settled.
struct Step {
    due: Due,
    /// The reason why the night is skipped, if it is.
    skipped: Option<String>,
}

/// The nights that have something left to do, in order: known nights that are not settled, and the nights
/// after the last one that was tried. Earlier nights stay as they were, even if the schedule has changed.
fn plan(scheduled: &Scheduled, log: &NightLog, now: DateTime<Utc>) -> Vec<Step> {
    let times = DueTimes(&scheduled.schedule);
    let Some(latest) = times.latest(now) else {
        return Vec::new();
    };
    let mut all: Vec<Due> = log
        .nights()
        .filter(|night| {
            // A process that was killed after the run has not made the decision.
            let has_decided = scheduled.schedule.then.is_none() || !night.is_of_run;
            !night.status.is_settled() || night.status == NightStatus::Done && !has_decided
        })
        .filter_map(|night| times.named(&night.night))
        .filter(|due| due.at <= now)
        .collect();
    let new = match log.nights().rfind(|night| !night.is_ahead) {
        Some(last) => {
            let from = date_of(&last.night).unwrap_or(latest.dates.date);
            let mut new = times.until(from, now);
            new.retain(|due| due.night > last.night);
            new
        }
        None => match scheduled.schedule.from {
            Some(from) => times.until(from, now),
            None => vec![latest.clone()],
        },
    };
    all.extend(new.into_iter().filter(|due| log.get(&due.night).is_none()));
    let step = |due: Due| {
        let known = log.get(&due.night).map(|night| night.status);
        let is_missed = match scheduled.schedule.catch_up {
            CatchUp::All => false,
            CatchUp::Latest => due.night < latest.night,
            CatchUp::None => window_end(scheduled, &due) < now,
        };
        let skipped = match (is_missed, known) {
            (false, _) => None,
            // The night had its chance, and keeps its state.
            (true, Some(_)) => return None,
            (true, None) => Some(match scheduled.schedule.catch_up {
                CatchUp::None => "it was missed, and `catch_up` is `none`".to_owned(),
                _ => "a later night is due, and `catch_up` is `latest`".to_owned(),
            }),
        };
        Some(Step { due, skipped })
    };
    all.into_iter().filter_map(step).collect()
}

/// The instant after which the data of a night is late.
fn late_at(times: DueTimes<'_>, due: &Due, until: TimeOfDay) -> DateTime<Utc> {
    let date = times.local_date(due.at);
    let same_day = times.instant(date, until);
    match same_day > due.at {
        true => same_day,
        false => times.instant(date.plus(1), until),
    }
}

/// The end of the period in which a night may be run if missed nights are not made up for.
fn window_end(scheduled: &Scheduled, due: &Due) -> DateTime<Utc> {
    match &scheduled.schedule.wait_for {
        Some(wait_for) => late_at(DueTimes(&scheduled.schedule), due, wait_for.until),
        None => due.at + WINDOW,
    }
}

/// The text of a failure with its causes and its hint.
fn told(failure: &Failure) -> String {
    let mut text = failure.message.clone();
    for cause in &failure.causes {
        text.push_str(&format!(": {cause}"));
    }
    if let Some(hint) = &failure.hint {
        text.push_str(&format!("; hint: {hint}"));
    }
    text
}

/// The state of the nights while they are run.
struct Nights<'a> {
    scheduler: &'a Scheduler<'a>,
    scheduled: &'a Scheduled,
    log: NightLog,
    changed: Vec<Night>,
}

impl Nights<'_> {
    /// Waits for a night's data and runs the night; returns false if it did not run.
    fn night(&mut self, due: &Due, work: &mut dyn Work) -> Result<bool, Failure> {
        let clock = self.scheduler.clock;
        if let Some(wait_for) = &self.scheduled.schedule.wait_for
            && !self.wait(due, wait_for, work)?
        {
            return Ok(false);
        }
        let log = &mut self.log;
        let mut run = None;
        let mut started = |id: &str| {
            run = Some(id.to_owned());
            log.add(clock.now(), due, Change::Started { run: id.to_owned() })
        };
        let ended = work.run(due, self.scheduled.schedule.timeout, &mut started);
        match ended {
            Ok(RunEnd { status, why }) => {
                let status = match status {
                    RunStatus::Done => NightStatus::Done,
                    RunStatus::Interrupted | RunStatus::Killed => NightStatus::Killed,
                    RunStatus::Failed | RunStatus::Running => NightStatus::Failed,
                };
                let mut ended = Ended { why, decision: None };
                let mut status = status;
                if status == NightStatus::Done
                    && self.scheduled.schedule.then.is_some()
                    && let Some(run) = &run
                {
                    match work.then(due, run) {
                        Ok(decision) => ended.decision = Some(decision),
                        Err(failure) => {
                            status = NightStatus::Failed;
                            ended.why =
                                Some(format!("its run is done, and `then` failed: {}", told(&failure)));
                        }
                    }
                }
                self.end(due, status, run, ended, work)?;
                Ok(true)
            }
            Err(failure) => {
                let recorded = self.end(due, NightStatus::Failed, run, Ended::because(told(&failure)), work);
                // A failure of the machine stops the following nights, too.
                match failure.code {
                    exit::MACHINE_FAILED => Err(failure),
                    _ => recorded.map(|()| true),
                }
            }
        }
    }

    /// Waits for a night's data; returns false if it does not arrive.
    fn wait(&mut self, due: &Due, wait_for: &WaitFor, work: &mut dyn Work) -> Result<bool, Failure> {
        let times = DueTimes(&self.scheduled.schedule);
        let Scheduler { clock, cancel, .. } = *self.scheduler;
        let late = late_at(times, due, wait_for.until);
        let begin = times.instant(due.dates.date, TimeOfDay::MIDNIGHT);
        let mut watched = Watched::default();
        loop {
            let awaited = match work.awaited(due, wait_for) {
                Ok(awaited) => awaited,
                Err(failure) => {
                    self.end(due, NightStatus::Failed, None, Ended::because(told(&failure)), work)?;
                    return Ok(false);
                }
            };
            if self.is_skipped(due, work)? {
                return Ok(false);
            }
            let now = clock.now();
            let Err(why) = watched.check(&awaited, begin, wait_for.stable_for, now) else {
                return Ok(true);
            };
            let Ok(left) = (late - now).to_std() else {
                self.late(due, why, work)?;
                return Ok(false);
            };
            if left.is_zero() {
                self.late(due, why, work)?;
                return Ok(false);
            }
            let known = self.log.get(&due.night);
            if !known
                .is_some_and(|night| night.status == NightStatus::Waiting && night.why.as_ref() == Some(&why))
            {
                self.log.add(now, due, Change::Waiting { why })?;
                self.log
                    .get(&due.night)
                    .into_iter()
                    .for_each(|night| work.changed(night));
            }
            clock.sleep(left.min(POLL), cancel);
            if cancel.is_cancelled() {
                return Ok(false);
            }
        }
    }

    /// Returns whether a person has skipped a night meanwhile.
    fn is_skipped(&mut self, due: &Due, work: &mut dyn Work) -> Result<bool, Failure> {
        let log = NightLog::read(self.scheduler.home, &self.scheduled.name)?;
        let Some(night) = log.get(&due.night).filter(|night| night.status == NightStatus::Skipped) else {
            return Ok(false);
        };
        work.changed(night);
        self.changed.push(night.clone());
        self.log = log;
        Ok(true)
    }

    /// Records that a night's data did not arrive, unless the log says so already.
    fn late(&mut self, due: &Due, why: String, work: &mut dyn Work) -> Result<(), Failure> {
        let known = self.log.get(&due.night);
        match known.filter(|night| night.status == NightStatus::Late && night.why.as_ref() == Some(&why)) {
            Some(night) => {
                work.changed(night);
                self.changed.push(night.clone());
                Ok(())
            }
            None => self.end(due, NightStatus::Late, None, Ended::because(why), work),
        }
    }

    fn end(
        &mut self,
        due: &Due,
        status: NightStatus,
        run: Option<String>,
        ended: Ended,
        work: &mut dyn Work,
    ) -> Result<(), Failure> {
        let change = Change::Ended {
            status,
            run,
            end: ended,
        };
        self.log.add(self.scheduler.clock.now(), due, change)?;
        if let Some(night) = self.log.get(&due.night) {
            work.changed(night);
            self.changed.push(night.clone());
        }
        Ok(())
    }
}
