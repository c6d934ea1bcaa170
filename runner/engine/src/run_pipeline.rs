//! [`run_pipeline`]: a complete run, for any caller.

use crate::event::Stamped;
use crate::failure::{Failure, no_thread};
use crate::grow::Grow;
use crate::options::Run;
use crate::reporter::Reporter;
use crate::scheduler;
use crate::summary::Summary;
use cache::Store;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// The share of a run's time that is spent on scrubbing the store, at least [`SCRUB_LEAST`] and at most a
/// second.
const SCRUB_SHARE: f64 = 0.01;

/// The time that every run spends on scrubbing, concurrently with its work.
const SCRUB_LEAST: Duration = Duration::from_millis(1);

/// The interval of [`Reporter::tick`].
const TICK: Duration = Duration::from_secs(1);

/// The outcome of a run.
pub struct Outcome {
    /// The summary of the run.
    pub summary: Summary,
    /// The number of damaged files found in the store; their producers run again when they are next needed.
    pub damaged: usize,
}

/// Runs a pipeline, and the stages that `grow` adds: reports its events, scrubs a part of the store and
/// flushes it. Garbage collection waits meanwhile.
///
/// The reporters run in their own thread and do not delay the run. They receive events in order, and are
/// flushed when no more events are pending.
///
/// # Errors
/// If the store cannot be written, or a reporter panics. A failed stage is not an error but part of the
/// [`Summary`].
pub fn run_pipeline(
    run: &Run<'_>,
    grow: Option<&mut dyn Grow>,
    reporters: &mut [&mut (dyn Reporter + Send)],
) -> Result<Outcome, Failure> {
    let _guard = run.store.guard()?;
    // Damage that it finds is repaired like any other: when the file is needed, or by the next run.
    let mut first = Scrub::start(run.store, SCRUB_LEAST);
    let (sender, batches) = channel::<Vec<Stamped>>();
    let summary = std::thread::scope(|scope| {
        let report = move || {
            loop {
                match batches.recv_timeout(TICK) {
                    Ok(events) => {
                        for reporter in reporters.iter_mut() {
                            events.iter().for_each(|event| reporter.report(event));
                            reporter.flush();
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        reporters.iter_mut().for_each(|reporter| reporter.tick())
                    }
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        };
        let reported = Builder::new().spawn_scoped(scope, report).map_err(no_thread)?;
        let summary = scheduler::run(run, grow, &mut |events| drop(sender.send(events)));
        drop(sender);
        let panicked = |_| Failure::machine("a reporter of the run's events panicked");
        reported.join().map(|()| summary).map_err(panicked)
    })?;
    // A long run scrubs more of the store, while the store is flushed.
    let budget =
        Duration::from_secs_f64((summary.seconds * SCRUB_SHARE).min(1.0)).saturating_sub(SCRUB_LEAST);
    let mut scrub = Scrub::start(run.store, budget);
    run.store.flush()?;
    let damaged = first.finish() + scrub.finish();
    Ok(Outcome { summary, damaged })
}

/// A thread that scrubs the store; dropping this joins it.
struct Scrub(Option<JoinHandle<usize>>);

impl Scrub {
    /// Starts a scrub, if the budget allows one.
    fn start(store: &Store, budget: Duration) -> Self {
        let store = store.clone();
        let scrub = move || store.scrub(budget).map_or(0, |scrubbed| scrubbed.damaged.len());
        let start = || Builder::new().spawn(scrub).ok();
        Self((!budget.is_zero()).then(start).flatten())
    }

    /// Joins the thread, and returns the number of damaged files.
    fn finish(&mut self) -> usize {
        self.0.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Scrub {
    fn drop(&mut self) {
        self.finish();
    }
}
