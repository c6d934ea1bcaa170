//! Allocation of the machine's resources to concurrent stages.

use runner_pipeline::{Node, Work};

/// The resources held by a running stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub threads: usize,
    pub memory: u64,
    /// True for a stage whose thread is not counted, because its work is small beside that of the others.
    pub is_small: bool,
}

/// Tells which stages, of those that could start now, have so little work that a share of `threads` in
/// proportion to it would be none. `bytes` is what each reads, if its work grows with that; `None` for all
/// others.
pub(crate) fn small(bytes: &[Option<u64>], threads: usize) -> Vec<bool> {
    let total = bytes
        .iter()
        .flatten()
        .fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
    let is_small = |bytes: u64| bytes.saturating_mul(2 * threads as u64) < total;
    bytes.iter().map(|bytes| bytes.is_some_and(is_small)).collect()
}

/// The available resources.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    jobs: usize,
    threads: usize,
    memory: Option<u64>,
    running: usize,
    /// True while a small stage runs.
    has_small: bool,
    used: Share,
}

impl Pool {
    pub(crate) fn new(jobs: usize, threads: usize, memory: Option<u64>) -> Self {
        Self {
            jobs: jobs.max(1),
            threads: threads.max(1),
            memory,
            running: 0,
            has_small: false,
            used: Share::default(),
        }
    }

    /// True if no further stage can start, whatever it requests.
    pub(crate) fn is_full(&self) -> bool {
        self.running >= self.jobs || (self.running > 0 && self.used.threads >= self.threads)
    }

    /// The number of threads of the machine.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Allocates the share of a small stage: a thread that is taken from no other, of which there is one at a
    /// time. One job stays for the others.
    pub(crate) fn take_small(&mut self) -> Option<Share> {
        (!self.has_small && self.running + 1 < self.jobs).then(|| {
            self.running += 1;
            self.has_small = true;
            Share {
                threads: 1,
                memory: 0,
                is_small: true,
            }
        })
    }

    /// Allocates a share for `node`, one of `waiting` stages that could start now; `None` if it has to wait.
    /// A stage that requests more than the machine has runs alone.
    pub(crate) fn take(&mut self, node: &Node, waiting: usize) -> Option<Share> {
        if self.running >= self.jobs {
            return None;
        }
        let free = self.threads.saturating_sub(self.used.threads);
        let side_by_side = waiting.clamp(1, self.jobs - self.running);
        let threads = match (node.resources.threads, &node.work) {
            (Some(threads), _) => threads.clamp(1, self.threads),
            // An external program is assumed to use one core.
            (None, Work::Command(_)) => 1,
            (None, Work::Kind { .. }) => free.div_ceil(side_by_side).max(1),
        };
        let memory = node.resources.memory.unwrap_or(0);
        let fits = threads <= free
            && self
                .memory
                .is_none_or(|total| memory == 0 || self.used.memory.saturating_add(memory) <= total);
        if self.running > 0 && !fits {
            return None;
        }
        let share = Share {
            threads,
            memory,
            is_small: false,
        };
        self.running += 1;
        self.used.threads += threads;
        self.used.memory = self.used.memory.saturating_add(memory);
        Some(share)
    }

    /// Releases a share.
    pub(crate) fn give(&mut self, share: Share) {
        self.has_small &= !share.is_small;
        self.running = self.running.saturating_sub(1);
        let counted = if share.is_small { 0 } else { share.threads };
        self.used.threads = self.used.threads.saturating_sub(counted);
        self.used.memory = self.used.memory.saturating_sub(share.memory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_pipeline::{Place, Resources};
    use stages_core::{Context, Outputs, Ports, StageError, StageKind};
    use std::collections::BTreeMap;

    /// A kind without work.
    struct Nothing;

    impl StageKind for Nothing {
        type Config = ();
        const NAME: &'static str = "test/nothing";
        const VERSION: u32 = 1;
        const ABOUT: &'static str = "Nothing.";
        const PORTS: Ports = Ports {
            inputs: &[],
            outputs: &[],
        };

        fn run(&self, (): &(), _: &Context) -> Result<Outputs, StageError> {
            Ok(Outputs::new())
        }
    }

    fn node(kind: bool, threads: Option<usize>, memory: Option<u64>) -> Node {
        let work = if kind {
            Work::Kind {
                kind: Box::leak(stages_core::erase(Nothing)),
                config: stages_core::Settings::default(),
            }
        } else {
            Work::Command(std::sync::Arc::default())
        };
        Node {
            id: "a".into(),
            stage: "a".into(),
            point: BTreeMap::new(),
            work,
            needs: BTreeMap::new(),
            sources: None,
            earlier: BTreeMap::new(),
            provides: BTreeMap::new(),
            resources: Resources {
                threads,
                memory,
                ..Resources::default()
            },
            retries: 0,
            timeout: None,
            register: None,
            base: std::path::Path::new("/").into(),
            place: Place::default(),
        }
    }

    #[test]
    fn shares() {
        let mut pool = Pool::new(8, 8, Some(100));
        let threads = |share: Option<Share>| share.map(|share| share.threads);
        assert_eq!(threads(pool.take(&node(true, None, None), 3)), Some(3));
        assert_eq!(threads(pool.take(&node(true, None, None), 2)), Some(3));
        assert_eq!(threads(pool.take(&node(true, None, None), 1)), Some(2));
        assert_eq!(pool.take(&node(false, None, None), 1), None);
        pool.give(Share {
            threads: 3,
            ..Share::default()
        });
        assert_eq!(threads(pool.take(&node(true, Some(2), Some(60)), 1)), Some(2));
        assert_eq!(pool.take(&node(true, Some(1), Some(60)), 1), None, "memory");
        assert_eq!(threads(pool.take(&node(false, None, Some(40)), 1)), Some(1));
    }

    #[test]
    fn a_small_stage_takes_no_thread_from_a_large_one() {
        let (large, little) = (Some(128 << 20), Some(2 << 20));
        assert_eq!(small(&[large, little, None], 2), [false, true, false]);
        assert_eq!(small(&[large, little, None], 64), [false, false, false]);
        assert_eq!(small(&[little, None], 2), [false, false], "nothing to compare with");
        assert_eq!(small(&[Some(0), Some(0)], 2), [false, false]);
        let mut pool = Pool::new(3, 2, None);
        let share = pool.take_small().unwrap();
        assert!(pool.take_small().is_none(), "one at a time");
        assert_eq!(pool.take(&node(true, None, None), 1).unwrap().threads, 2);
        assert!(pool.is_full());
        pool.give(share);
        assert!(pool.is_full(), "its thread was not counted");
    }

    #[test]
    fn one_that_asks_for_too_much_runs_alone() {
        let mut pool = Pool::new(2, 2, Some(100));
        let share = pool.take(&node(true, Some(64), Some(1000)), 1).unwrap();
        assert_eq!(share.threads, 2);
        assert_eq!(pool.take(&node(false, None, None), 1), None);
        pool.give(share);
        let mut serial = Pool::new(1, 4, None);
        assert_eq!(serial.take(&node(true, None, None), 5).unwrap().threads, 4);
        assert_eq!(serial.take(&node(true, None, None), 5), None);
    }
}
