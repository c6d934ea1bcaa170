//! Results and events of jobs in flight, and their ends.

use super::super::files::{self, Tail};
use super::super::judge::{Evidence, judge};
use super::{Batch, Driver, Flying};
use crate::end::{End, Ended};
use runner_engine::executor::{Message, beside};
use stages_core::{EventSink, StageEvent};
use std::path::Path;
use std::time::{Duration, Instant};

/// The number of jobs whose events are read in a turn.
const READS: usize = 32;

/// The interval at which a directory is looked at without a cached view, for the result of a task that has
/// ended.
const LOOK: Duration = Duration::from_secs(1);

/// The time after which a Slurm that has not answered is taken for silent.
const SILENT: Duration = Duration::from_secs(60);

/// The time that a task may take to end after the grace period, once it is cancelled.
const STUCK: Duration = Duration::from_secs(60);

/// The same, for a task that is killed at once.
const KILLED: Duration = Duration::from_secs(15);

impl Driver {
    /// Looks for the results of jobs in flight.
    pub(super) fn list(&mut self) {
        for batch in self.batches.values_mut() {
            let is_due = batch.array.is_some() && batch.listed.elapsed() >= self.site.times.list;
            if !is_due || batch.tasks.is_empty() {
                continue;
            }
            let mut afresh = false;
            for task in batch.tasks.values_mut() {
                let is_missing = task.over.is_some() && task.jobs.iter().any(|job| job.result.is_none());
                if is_missing && task.looked.is_none_or(|at| at.elapsed() >= LOOK) {
                    task.looked = Some(Instant::now());
                    afresh = true;
                }
            }
            let Ok(seen) = files::list(&batch.dir, afresh) else {
                continue;
            };
            batch.listed = Instant::now();
            for job in batch.tasks.values_mut().flat_map(|task| &mut task.jobs) {
                job.has_events |= seen.events.contains(&job.file);
                if job.result.is_none() && seen.results.contains(&job.file) {
                    job.result = files::result(&batch.dir, &job.file);
                }
            }
        }
    }

    /// Forwards events of some jobs, in turn.
    pub(super) fn follow(&mut self) {
        let (first, task) = std::mem::take(&mut self.turn);
        let mut left = READS;
        for (name, batch) in self.batches.range_mut(first.clone()..) {
            let from = if *name == first { task } else { 0 };
            for (number, task) in batch.tasks.range_mut(from..) {
                for job in task.jobs.iter_mut().filter(|job| job.has_events) {
                    job.read_events(&batch.dir);
                    left = left.saturating_sub(1);
                }
                if left == 0 {
                    self.turn = (name.clone(), number + 1);
                    return;
                }
            }
        }
    }

    /// Answers the requests whose jobs have ended.
    pub(super) fn conclude(&mut self) {
        let is_silent = self.polling.silent_for() > SILENT;
        let (mut undecided, mut stuck) = (false, Vec::new());
        for batch in self.batches.values_mut() {
            let array = batch.array.map(|(array, _)| array);
            for (number, task) in &mut batch.tasks {
                let mut is_first = true;
                let mut open = Vec::new();
                for mut job in std::mem::take(&mut task.jobs) {
                    let evidence = Evidence {
                        result: job.result.as_ref(),
                        over: task.over.as_ref(),
                        waited: task.over.as_ref().map_or(Duration::ZERO, |over| over.at.elapsed()),
                        is_silent,
                        is_stopped: task.stop.is_some(),
                        is_first,
                    };
                    is_first &= job.result.is_some();
                    let output = || files::output(&batch.dir, *number);
                    let mut end = judge(evidence, self.site.times.bounds, output);
                    undecided |= end.is_none() && job.result.is_some();
                    if end.is_none()
                        && let Some(stop) = &task.stop
                        && stop.since.elapsed() > if stop.kills { KILLED } else { job.limits.grace + STUCK }
                    {
                        stuck.extend(array.map(|array| format!("{array}_{number}")));
                        end = Some(End::Interrupted);
                    }
                    let Some(end) = end else {
                        open.push(job);
                        continue;
                    };
                    job.drain_events(&batch.dir);
                    if let End::Done(done) = &end {
                        batch.succeeded.push(job.key);
                        if let Some(seconds) = done.seconds {
                            self.measured.add(&job.kind, seconds);
                        }
                    }
                    let _ = job.reply.send(Ended {
                        end,
                        job: array.map_or_else(String::new, |array| format!("{array}_{number}")),
                        node: task.node.clone(),
                        steps: job.steps,
                    });
                }
                task.jobs = open;
            }
            batch.tasks.retain(|_, task| !task.jobs.is_empty());
        }
        if undecided {
            self.polling.soon();
        }
        if !stuck.is_empty() {
            let message = format!("jobs that may still be in the queue of Slurm: {}", stuck.join(" "));
            let hint = format!("`scancel {}` ends them", stuck.join(" "));
            self.tell(StageEvent::Warning {
                message,
                hint: Some(hint),
            });
        }
    }
}

impl Flying {
    /// Forwards a piece of the job's events; true if there may be more.
    fn read_events(&mut self, dir: &Path) -> bool {
        let Self {
            tail, events, steps, ..
        } = self;
        let path = beside(&dir.join(&self.file), "events");
        tail.read(&path, |message| forward(message, events.as_ref(), steps))
            .unwrap_or(false)
    }

    fn drain_events(&mut self, dir: &Path) {
        while self.read_events(dir) {}
        self.tail = Tail::default();
    }
}

/// Forwards an event, and notes its step.
fn forward(message: Message, events: &dyn EventSink, steps: &mut Option<(u64, u64)>) {
    let Some(event) = message.into_event() else { return };
    let step = match &event {
        StageEvent::Progress { done, .. } => *done,
        StageEvent::Metric { step, .. } => *step,
        _ => 0,
    };
    if step > 0 {
        let (first, last) = steps.unwrap_or((step, step));
        *steps = Some((first, last.max(step)));
    }
    events.emit(event);
}

impl Batch {
    /// True if all its tasks are stopped, and all of them are this run's: its array can be cancelled as a
    /// whole.
    pub(super) fn is_stopped(&self) -> bool {
        !self.is_foreign && self.tasks.values().all(|task| task.stop.is_some())
    }
}
