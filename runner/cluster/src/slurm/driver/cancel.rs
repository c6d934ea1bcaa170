//! Cancellation of what this run has in the queue, and of nothing else.

use super::{Batch, Driver, Task};
use std::time::{Duration, Instant};

/// A task that is being stopped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    pub since: Instant,
    /// The time of the next `scancel`: a task may start between two of them.
    next: Instant,
    /// True if it is killed rather than told.
    pub kills: bool,
}

const REPEAT: Duration = Duration::from_secs(5);

/// The maximum number of ids of a command.
const IDS: usize = 500;

impl Driver {
    /// Stops the tasks all of whose jobs are cancelled: those that wait are removed from the queue, those
    /// that run are told to write a checkpoint and, after the grace period, killed.
    pub(super) fn stop_tasks(&mut self) {
        let now = Instant::now();
        let (mut told, mut killed) = (Vec::new(), Vec::new());
        for batch in self.batches.values_mut() {
            for task in batch.tasks.values_mut() {
                task.stop(now);
            }
            if batch.array.is_none() {
                // Its submission is in progress.
                continue;
            }
            let due = |task: &Task| task.over.is_none() && task.stop.is_some_and(|stop| stop.next <= now);
            let numbers: Vec<u32> = batch
                .tasks
                .iter()
                .filter(|(_, task)| due(task))
                .map(|(number, _)| *number)
                .collect();
            if numbers.is_empty() {
                continue;
            }
            let kills = numbers
                .iter()
                .any(|number| batch.tasks[number].stop.is_some_and(|stop| stop.kills));
            let ids = ids(batch, &numbers);
            if kills {
                killed.extend(ids)
            } else {
                told.extend(ids)
            }
            for task in batch.tasks.values_mut() {
                if let Some(stop) = &mut task.stop {
                    stop.next = now + REPEAT;
                }
            }
        }
        // A kill does not wait behind what is told.
        if !killed.is_empty() {
            self.cancels.clear();
        }
        for ids in killed.chunks(IDS) {
            self.cancels.push_back(ids.to_vec());
        }
        for ids in told.chunks(IDS) {
            let options = [
                &["--state=PENDING"][..],
                &["--state=RUNNING", "--signal=USR1", "--batch"],
            ];
            for options in options {
                let options = options.iter().map(|option| (*option).to_owned());
                self.cancels.push_back(options.chain(ids.iter().cloned()).collect());
            }
            self.polling.soon();
        }
        if !killed.is_empty() {
            self.polling.soon();
        }
    }
}

/// The ids of a batch's tasks, as `scancel` takes them.
fn ids(batch: &Batch, numbers: &[u32]) -> Vec<String> {
    match batch.array {
        Some((array, _)) if batch.is_stopped() => vec![array.to_string()],
        _ => numbers
            .iter()
            .filter_map(|&number| batch.id(number))
            .map(|id| id.to_string())
            .collect(),
    }
}

impl Task {
    fn stop(&mut self, now: Instant) {
        let Some(first) = self.jobs.first() else { return };
        if !self.jobs.iter().all(super::Flying::is_cancelled) {
            return;
        }
        let is_late = |stop: &Stop| stop.kills || now.duration_since(stop.since) > first.limits.grace;
        let kills = first.limits.kill.is_cancelled() || self.stop.as_ref().is_some_and(is_late);
        match &mut self.stop {
            Some(stop) if stop.kills == kills => {}
            Some(stop) => {
                stop.kills = kills;
                // The bound on a kill counts from it.
                stop.since = now;
                stop.next = now;
            }
            None => {
                self.stop = Some(Stop {
                    since: now,
                    next: now,
                    kills,
                });
            }
        }
    }
}
