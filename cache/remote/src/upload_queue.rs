//! Write-behind: a queue of records that are uploaded in the background during the run.

use crate::client::Client;
use crate::upload::upload;
use cache::parallel::locked;
use cache::{Drained, RecordId, UploadProgress};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The interval between two checks of the wait in [`UploadQueue::drain`].
const TICK: Duration = Duration::from_millis(100);

/// A queue of records that wait for their upload. The uploading thread starts with the first record.
#[derive(Default)]
pub(crate) struct UploadQueue {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    stop: AtomicBool,
    /// The bytes of the current batch, and the number of bytes transferred before it began.
    batch_bytes: AtomicU64,
    batch_start: AtomicU64,
}

#[derive(Default)]
struct State {
    waiting: Vec<RecordId>,
    /// The number of records of the current batch.
    busy: usize,
    /// Records whose upload failed. They are retried once, at the end of the run.
    failed: Vec<RecordId>,
    retried: bool,
    started: bool,
}

impl UploadQueue {
    /// Adds records.
    pub(crate) fn enqueue(&self, client: &Arc<Client>, records: Vec<RecordId>) {
        let mut state = locked(&self.shared.state);
        state.waiting.extend(records);
        if state.waiting.is_empty() || std::mem::replace(&mut state.started, true) {
            self.shared.changed.notify_all();
            return;
        }
        let (client, shared) = (client.clone(), self.shared.clone());
        let thread = std::thread::Builder::new()
            .name("uploads".to_owned())
            .spawn(move || work(&client, &shared));
        // Without the thread, nothing is uploaded, and `drain` reports that.
        state.started = thread.is_ok();
    }

    /// Waits until the queue is empty, for at most `limit` and until `stop` returns true.
    pub(crate) fn drain(
        &self,
        client: &Client,
        limit: Duration,
        stop: &dyn Fn() -> bool,
        on_progress: &mut dyn FnMut(UploadProgress),
    ) -> Drained {
        let shared = &self.shared;
        let deadline = Instant::now() + limit;
        let mut state = locked(&shared.state);
        loop {
            let mut open = state.waiting.len() + state.busy;
            if open == 0 && !state.failed.is_empty() && !state.retried && client.is_available() {
                // An outage may have ended by now.
                state.retried = true;
                state.waiting = std::mem::take(&mut state.failed);
                open = state.waiting.len();
                shared.changed.notify_all();
            }
            let left = (state.failed.len() + open) as u64;
            let done = open == 0 || !state.started;
            if done || Instant::now() >= deadline || stop() {
                shared.stop.store(!done, Ordering::Relaxed);
                return Drained {
                    left,
                    out_of_time: !done,
                };
            }
            let total = shared.batch_bytes.load(Ordering::Relaxed);
            let moved = client.stats.get().moved_bytes;
            on_progress(UploadProgress {
                records: open as u64,
                done: moved
                    .saturating_sub(shared.batch_start.load(Ordering::Relaxed))
                    .min(total),
                total,
            });
            state = shared
                .changed
                .wait_timeout(state, TICK)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

/// Uploads all waiting records as one batch, repeatedly.
fn work(client: &Client, shared: &Shared) {
    loop {
        let batch = {
            let mut state = locked(&shared.state);
            while state.waiting.is_empty() {
                state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.busy = state.waiting.len();
            std::mem::take(&mut state.waiting)
        };
        let plan = |bytes| {
            let moved = client.stats.get().moved_bytes;
            shared.batch_start.store(moved, Ordering::Relaxed);
            shared.batch_bytes.store(bytes, Ordering::Relaxed);
        };
        let failed = match upload(client, &batch, &shared.stop, plan) {
            Ok(report) => report.left,
            Err(err) => {
                let text = || format!("the upload to the remote {} is incomplete: {err}", client.name);
                client.warnings.add("local store", text);
                batch
            }
        };
        let mut state = locked(&shared.state);
        state.busy = 0;
        state.failed.extend(failed);
        shared.changed.notify_all();
    }
}
