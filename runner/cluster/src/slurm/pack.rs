//! Jobs to tasks: those with equal requests share an array, and short ones share a task. No input or output
//! here.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The resources of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    pub threads: usize,
    /// In bytes.
    pub memory: Option<u64>,
    pub gpus: u32,
    pub time: Option<Duration>,
    /// The nodes to avoid.
    pub excluded: BTreeSet<String>,
}

/// The measured run times of this run, by kind of stage.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured(BTreeMap<String, (f64, u32)>);

impl Measured {
    pub(super) fn add(&mut self, kind: &str, seconds: f64) {
        let (sum, count) = self.0.entry(kind.to_owned()).or_default();
        *sum += seconds;
        *count += 1;
    }

    /// The mean run time of a kind in seconds.
    pub(super) fn mean(&self, kind: &str) -> Option<f64> {
        self.0.get(kind).map(|(sum, count)| sum / f64::from(*count))
    }
}

/// The number of jobs of each task: as many as their expected times, in seconds, fit into `pack`, in their
/// order. A job whose time is unknown has a task of its own. At most `tasks` tasks.
pub(super) fn tasks(expected: &[Option<f64>], pack: Duration, tasks: usize) -> Vec<usize> {
    let mut sizes: Vec<usize> = Vec::new();
    // The time that is left in the last task.
    let mut left = -1.0;
    for time in expected {
        let time = time.filter(|time| time.is_finite()).map(|time| time.max(0.0));
        let is_full = sizes.len() >= tasks;
        match (time, sizes.last_mut()) {
            (Some(time), Some(last)) if time <= left => {
                *last += 1;
                left -= time;
            }
            _ if is_full => break,
            _ => {
                sizes.push(1);
                left = time.map_or(-1.0, |time| pack.as_secs_f64() - time);
            }
        }
        // No task takes more jobs than an end of its node may waste.
        if sizes.last().is_some_and(|&last| last >= LARGEST) {
            left = -1.0;
        }
    }
    sizes
}

/// The maximum number of jobs of a task.
const LARGEST: usize = 256;

/// The time limit of a task of `jobs` jobs: that of a job, and the time that the others are expected to take.
pub(super) fn limit(time: Duration, jobs: usize, pack: Duration) -> Duration {
    if jobs > 1 { time.saturating_add(pack) } else { time }
}

/// The time before a task's limit at which it is told, in seconds: 120, or a quarter of a short limit. Slurm
/// may tell it up to a minute earlier.
pub(super) fn warning(limit: Option<Duration>) -> u64 {
    limit.map_or(120, |limit| (limit.as_secs() / 4).clamp(1, 120))
}

/// A duration as Slurm reads it: `HOURS:MINUTES:SECONDS`, whole minutes, at least one.
pub(super) fn clock(time: Duration) -> String {
    let minutes = time.as_secs().div_ceil(60).max(1);
    format!("{}:{:02}:00", minutes / 60, minutes % 60)
}

/// A name that no program takes for anything else.
pub(super) fn plain(name: &str) -> String {
    let kept = |c: char| {
        if c.is_ascii_alphanumeric() || "_.-".contains(c) {
            c
        } else {
            '_'
        }
    };
    name.chars().take(64).map(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACK: Duration = Duration::from_secs(300);

    #[test]
    fn short_jobs_share_tasks_up_to_the_time() {
        let some = |times: &[f64]| times.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(tasks(&some(&[100.0; 7]), PACK, 99), [3, 3, 1]);
        assert_eq!(tasks(&some(&[400.0, 10.0, 10.0]), PACK, 99), [1, 2]);
        assert_eq!(
            tasks(&[None, None, Some(1.0), Some(1.0), None, Some(2.0)], PACK, 99),
            [1, 1, 2, 1, 1]
        );
        assert_eq!(tasks(&some(&[100.0; 7]), PACK, 2), [3, 3], "the rest waits");
        assert_eq!(tasks(&some(&[0.0; 600]), PACK, 99), [256, 256, 88]);
        assert_eq!(tasks(&some(&[1.0; 3]), Duration::ZERO, 99), [1, 1, 1]);
        assert_eq!(tasks(&[Some(f64::NAN), Some(f64::INFINITY)], PACK, 99), [1, 1]);
        assert!(tasks(&some(&[1.0]), PACK, 0).is_empty());
        assert!(tasks(&[], PACK, 9).is_empty());
    }

    #[test]
    fn limits_as_slurm_reads_them() {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        assert_eq!(clock(Duration::from_secs(1)), "0:01:00");
        assert_eq!(clock(Duration::from_secs(61)), "0:02:00");
        assert_eq!(clock(minutes(60 * 49 + 5)), "49:05:00");
        assert_eq!(limit(minutes(10), 1, PACK), minutes(10));
        assert_eq!(limit(minutes(10), 2, PACK), minutes(15));
        assert_eq!(
            [None, Some(minutes(60)), Some(minutes(2))].map(warning),
            [120_u64, 120, 30]
        );
    }

    #[test]
    fn names_are_plain() {
        assert_eq!(plain("a b;$(rm -rf /)'\n.x-1"), "a_b___rm_-rf_____.x-1");
        assert_eq!(plain(&"é".repeat(100)), "_".repeat(64));
    }

    #[test]
    fn measured_times() {
        let mut measured = Measured::default();
        measured.add("train/ppo", 2.0);
        measured.add("train/ppo", 4.0);
        assert_eq!((measured.mean("train/ppo"), measured.mean("other")), (Some(3.0), None));
    }
}
