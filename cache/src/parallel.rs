//! Processing of many items on several threads.

use crate::error::Result;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

/// Locks a mutex, also after a thread that held it panicked: its value is valid at every instant.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Applies `work` to every item, on as many threads as the machine has cores; the results are in the order of
/// the items.
pub(crate) fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    map_with_threads(items, threads, work)
}

/// Applies `work` as [`map`] does, on at most the given number of threads: for work that waits more than it
/// computes.
///
/// # Errors
/// The first error of `work`; the remaining items are skipped.
pub fn map_with_threads<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let threads = threads.min(items.len());
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    let take = || {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(i) else { return };
            let result = work(item);
            if result.is_err() {
                // No thread takes another item after an error.
                next.store(items.len(), Ordering::Relaxed);
            }
            if let Ok(mut done) = done.lock() {
                done.push((i, result));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // If no more threads can be started, those already running do the work.
            if Builder::new().spawn_scoped(scope, take).is_err() {
                break;
            }
        }
        take();
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(i, _)| *i);
    done.into_iter().map(|(_, result)| result).collect()
}
