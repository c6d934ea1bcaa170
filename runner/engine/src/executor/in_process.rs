//! An executor that runs actions in this process: for tests, and for programs that use this crate as a
//! library.

use super::isolation::Sandbox;
use super::job::{Done, Executor, Job};
use super::limits::{Limits, timed_out};
use super::run_job::run_job;
use cache::{OpenUpstream, Upstream};
use stages_core::error::Cause;
use stages_core::typed_output::FileType;
use stages_core::{AnyStage, CancelToken, EventSink, StageError};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Runs actions in this process, each on its own thread pool. A stage that does not check for cancellation
/// cannot be stopped, and one that aborts terminates the process.
pub struct InProcess {
    kinds: &'static [Box<dyn AnyStage>],
    file_types: &'static [FileType],
    open_upstream: OpenUpstream,
    sandbox: Sandbox,
}

impl InProcess {
    /// An executor with these stage kinds, and these types of files. External programs run in processes of
    /// their own, started by the binary `program` of this project.
    pub fn new(
        kinds: &'static [Box<dyn AnyStage>],
        file_types: &'static [FileType],
        open_upstream: OpenUpstream,
        program: PathBuf,
    ) -> Self {
        Self {
            kinds,
            file_types,
            open_upstream,
            sandbox: Sandbox::new(program),
        }
    }
}

impl Executor for InProcess {
    fn run(&self, job: &Job, events: &Arc<dyn EventSink>, limits: &Limits) -> Result<Done, StageError> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(job.threads.max(1))
            .build()
            .map_err(|err| StageError::new(format!("cannot start threads: {err}")))?;
        let store = job.store(self.open_upstream)?;
        let stop = CancelToken::default();
        let inner = Limits {
            cancel: stop.clone(),
            ..limits.clone()
        };
        let (over, ended) = channel::<()>();
        let mut timeout = None;
        let result = std::thread::scope(|scope| {
            let watch = || {
                let started = Instant::now();
                let ended = ended;
                loop {
                    match ended.recv_timeout(Duration::from_millis(20)) {
                        Err(RecvTimeoutError::Timeout) => {}
                        _ => return None,
                    }
                    if limits.cancel.is_cancelled() || limits.kill.is_cancelled() {
                        stop.cancel();
                    }
                    if let Some(limit) = limits.timeout.filter(|limit| started.elapsed() > *limit) {
                        stop.cancel();
                        return Some(limit);
                    }
                }
            };
            let watch = Builder::new().spawn_scoped(scope, watch);
            let watch = watch.map_err(|err| StageError::new(format!("cannot start a thread: {err}")))?;
            let result = pool
                .install(|| run_job(job, &store, self.kinds, self.file_types, events, &inner, &self.sandbox));
            let result = result.map(|done| Done {
                upstream: store.upstream().map(Upstream::worker_report).unwrap_or_default(),
                ..done
            });
            drop(over);
            timeout = watch.join().unwrap_or(None);
            result
        });
        match (result, timeout) {
            (Err(err), Some(limit)) if err.cause == Cause::Interrupted => Err(timed_out(limit)),
            (result, _) => result,
        }
    }
}
