//! Spin-waiting: idle threads of the pool poll for tasks without sleeping while an update runs.

use rayon::Yield;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The longest time for which a thread spins without finding a task; nothing waits longer for the thread.
const SPIN_LIMIT: Duration = Duration::from_millis(1);

/// Runs `work`, during which idle threads of the current pool spin. The tasks of a small minibatch take some
/// hundred microseconds, and waking a sleeping thread takes a good part of that: PPO at small sizes is a
/// quarter faster with it.
pub(crate) fn spinning<R>(work: impl FnOnce() -> R) -> R {
    if rayon::current_num_threads() == 1 {
        return work();
    }
    let here = rayon::current_thread_index();
    let done = AtomicBool::new(false);
    rayon::in_place_scope(|scope| {
        let done = Done(&done);
        let over = done.0;
        scope.spawn_broadcast(move |_, thread| {
            if Some(thread.index()) != here {
                look_for_work(over);
            }
        });
        work()
    })
}

/// Releases the threads when `work` is over, or has panicked.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn look_for_work(over: &AtomicBool) {
    let (mut since, mut rounds) = (Instant::now(), 0_u32);
    while !over.load(Ordering::Relaxed) {
        if rayon::yield_now() == Some(Yield::Executed) {
            since = Instant::now();
            continue;
        }
        rounds += 1;
        if rounds.is_multiple_of(16) {
            if since.elapsed() > SPIN_LIMIT {
                return;
            }
            // Other threads that need the core get it.
            std::thread::yield_now();
        }
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;

    #[test]
    fn work_is_done_within_and_outside_of_pools_of_any_size() {
        let sum = || spinning(|| (0..100_u64).into_par_iter().map(|i| i * i).sum::<u64>());
        assert_eq!(sum(), 328_350);
        for threads in 1..=4 {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            for _ in 0..100 {
                assert_eq!(pool.install(sum), 328_350);
                assert_eq!(pool.install(|| spinning(sum)), 328_350);
            }
        }
    }

    #[test]
    fn a_panic_lets_go_of_the_threads() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pool.install(|| spinning(|| panic!("on purpose")))
        }));
        assert!(panicked.is_err());
        assert_eq!(pool.install(|| spinning(|| 1)), 1);
    }
}
