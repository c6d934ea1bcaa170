//! Uploads in the background: a run goes on while its results are on their way.

use super::client::{Remote, locked};
use super::upload::Upload;
use crate::{MemoKey, Store};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often whoever waits looks up.
const TICK: Duration = Duration::from_millis(100);

/// What is still to be uploaded.
#[derive(Default)]
pub(super) struct Queue {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    stop: AtomicBool,
    /// Bytes of the batch that is on its way, and what was moved before it began.
    batch_bytes: AtomicU64,
    batch_began: AtomicU64,
}

#[derive(Default)]
struct State {
    waiting: Vec<Upload>,
    /// Of the batch that is on its way.
    busy: usize,
    /// Those that could not be uploaded. They are tried again once, at the end of the run.
    failed: Vec<Upload>,
    tried_again: bool,
    started: bool,
}

/// How the wait for uploads ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Drained {
    /// Records that are not there, because time was up or the remote did not take them.
    pub left: u64,
    /// Whether time was up.
    pub out_of_time: bool,
}

/// How far the uploads are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UploadProgress {
    /// Records that wait or are on their way.
    pub records: u64,
    /// Bytes of those on their way that have been uploaded.
    pub done: u64,
    /// All bytes of those on their way.
    pub total: u64,
}

impl Remote {
    /// Notes a memo that was written to the local store.
    pub(crate) fn note_memo(&self, key: MemoKey) {
        if !self.is_read_only() {
            locked(&self.inner.memos).push(key);
        }
    }

    /// Uploads in the background. The thread that does it starts with the first.
    pub(super) fn upload_later(&self, store: &Store, items: impl IntoIterator<Item = Upload>) {
        if self.is_read_only() {
            return;
        }
        let shared = &self.inner.queue.shared;
        let mut state = locked(&shared.state);
        state.waiting.extend(items);
        if state.waiting.is_empty() || std::mem::replace(&mut state.started, true) {
            shared.changed.notify_all();
            return;
        }
        let (remote, store, of_thread) = (self.clone(), store.clone(), shared.clone());
        let started = std::thread::Builder::new()
            .name("uploads".to_owned())
            .spawn(move || work(&remote, &store, &of_thread));
        // Without a thread nothing is uploaded, and `drain` says so.
        state.started = started.is_ok();
    }

    /// Waits for the uploads to end, for as long as `limit` at most and until `stop` says so. `on_progress` is called several
    /// times a second.
    pub fn drain(
        &self,
        limit: Duration,
        stop: impl Fn() -> bool,
        mut on_progress: impl FnMut(UploadProgress),
    ) -> Drained {
        let shared = &self.inner.queue.shared;
        let until = Instant::now() + limit;
        let mut state = locked(&shared.state);
        loop {
            let mut open = state.waiting.len() + state.busy;
            if open == 0 && !state.failed.is_empty() && !state.tried_again && !self.is_aside() {
                // An outage may be over.
                state.tried_again = true;
                state.waiting = std::mem::take(&mut state.failed);
                open = state.waiting.len();
                shared.changed.notify_all();
            }
            let left = (state.failed.len() + open) as u64;
            if open == 0 || !state.started {
                return Drained {
                    left,
                    out_of_time: false,
                };
            }
            if Instant::now() >= until || stop() {
                shared.stop.store(true, Ordering::Relaxed);
                return Drained {
                    left,
                    out_of_time: true,
                };
            }
            let moved = self.traffic().moved_bytes;
            let total = shared.batch_bytes.load(Ordering::Relaxed);
            on_progress(UploadProgress {
                records: open as u64,
                done: moved
                    .saturating_sub(shared.batch_began.load(Ordering::Relaxed))
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

/// Takes all that waits, uploads it, and again.
fn work(remote: &Remote, store: &Store, shared: &Shared) {
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
            shared
                .batch_began
                .store(remote.traffic().moved_bytes, Ordering::Relaxed);
            shared.batch_bytes.store(bytes, Ordering::Relaxed);
        };
        let report = remote.upload(store, &batch, true, &shared.stop, plan);
        let failed = match report {
            Ok(report) => report.left,
            Err(err) => {
                remote.warn("local", || format!("not all of it was uploaded: {err}"));
                batch
            }
        };
        let mut state = locked(&shared.state);
        state.busy = 0;
        state.failed.extend(failed);
        shared.changed.notify_all();
    }
}
