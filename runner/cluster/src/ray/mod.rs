//! Jobs on Ray, as tasks that a driver in Python submits ([`driver`]).
//!
//! A job's JSON reaches its task as an argument, and the task passes the lines of the worker back. With
//! `store: remote`, a job's inputs are uploaded before it is submitted, and the node has uploaded its results
//! before it reports success.

mod driver;

use crate::Launch;
use crate::end::{End, Ended};
use crate::retry::{Attempts, Policy};
use crate::settings::Ray;
use cache::parallel::locked;
use cache::{Store, Upstream};
use driver::{Batch, Driver, Submission, TaskEnd};
use runner_engine::Failure;
use runner_engine::executor::{Done, Executor, Job, JobStore, Limits, Message};
use stages_core::error::Cause;
use stages_core::{EventSink, StageError, StageEvent};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The interval of the checks for cancellation.
const TICK: Duration = Duration::from_millis(200);

/// The time after the grace period of a cancelled job from which on its end is not waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// The number of characters by which a node and a task are shown; Ray's random ids differ in them.
const SHOWN: usize = 16;

/// Starts the executor.
///
/// # Errors
/// If Ray is missing or does not answer, or the nodes could not write to the remote store.
pub fn start(settings: &Ray, launch: Launch) -> Result<Box<dyn Executor>, Failure> {
    let is_shared = launch.store.is_shared();
    if !is_shared && launch.store.upstream().is_some_and(Upstream::is_read_only) {
        return Err(Failure::usage(format!(
            "the nodes of the executor `{}` could not write to the remote store: it is only read",
            launch.name
        ))
        .hint("remove `read_only: true` from `remote:` of `config.yaml`, or write `store: shared`"));
    }
    Ok(Box::new(OnRay {
        driver: Driver::start(settings, &launch.program, launch.store.root())?,
        name: launch.name,
        policy: Policy {
            retries: settings.retries,
            max_memory: settings.max_memory,
        },
        store: launch.store,
        uploads: Mutex::default(),
    }))
}

/// The executor.
struct OnRay {
    name: String,
    policy: Policy,
    store: Store,
    driver: Driver,
    /// Held during the upload of inputs: jobs that start together often have the same.
    uploads: Mutex<()>,
}

impl Executor for OnRay {
    fn run(&self, job: &Job, events: &Arc<dyn EventSink>, limits: &Limits) -> Result<Done, StageError> {
        let json = serde_json::to_string(job)
            .map_err(|err| StageError::new(format!("the job cannot be written: {err}")))?;
        let mut attempts = Attempts::new(job.request.memory);
        attempts.run(self.policy, &self.name, &**events, |attempts| {
            match self.send_inputs(job) {
                Ok(()) => self.attempt(job, &json, attempts, (events, limits)),
                Err(err) => Ended::nowhere(End::Failed(err)),
            }
        })
    }
}

/// The result that a worker reports, and what Ray and the driver know of its task.
#[derive(Default)]
struct Heard {
    result: Option<Result<Done, StageError>>,
    task: String,
    node: Option<String>,
    steps: Option<(u64, u64)>,
}

impl OnRay {
    /// Uploads those inputs of a job that the remote store lacks.
    fn send_inputs(&self, job: &Job) -> Result<(), StageError> {
        let JobStore::Node { .. } = job.store else {
            return Ok(());
        };
        let Some(upstream) = self.store.upstream().filter(|upstream| upstream.is_available()) else {
            return Err(unreachable(""));
        };
        let inputs = self.store.blobs_of(job.inputs.values().flatten().copied())?;
        let absent = {
            let _one = locked(&self.uploads);
            upstream.send(&inputs)?
        };
        let Some(first) = absent.first() else { return Ok(()) };
        if absent.iter().all(|blob| self.store.has_here(*blob)) {
            return Err(unreachable(&upstream.take_warnings().join("; ")));
        }
        Err(StageError {
            message: format!("the input {} is in no store", first.blob),
            hint: None,
            cause: Cause::DamagedInput,
        })
    }

    /// Runs a job once.
    fn attempt(
        &self,
        job: &Job,
        json: &str,
        attempts: &Attempts,
        (events, limits): (&Arc<dyn EventSink>, &Limits),
    ) -> Ended {
        let submission = Submission {
            job: json,
            name: format!("runner {}", job.stage),
            cpus: job.threads.max(1),
            gpus: job.request.gpus,
            memory: attempts.memory,
            excluded: attempts.excluded.iter().cloned().collect(),
            grace: limits.grace.as_secs_f64(),
        };
        let (id, batches) = match self.driver.submit(&submission) {
            Ok(submitted) => submitted,
            Err(err) => return Ended::nowhere(End::Refused(err)),
        };
        let mut heard = Heard::default();
        let started = Instant::now();
        let (mut cancelled, mut killed): (Option<Instant>, bool) = (None, false);
        let end = loop {
            match batches.recv_timeout(TICK) {
                Ok(batch) => {
                    if let Some(end) = self.take(batch, &mut heard, &**events) {
                        break end;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let end = End::Refused(self.driver.gone());
                    return heard.ended(end);
                }
            }
            // The node watches the time limit of a stage, and a job that has none may wait in Ray's queue.
            let is_late = job.request.timeout.is_none()
                && limits.timeout.is_some_and(|limit| started.elapsed() > limit);
            if cancelled.is_none() && (is_late || limits.cancel.is_cancelled()) {
                cancelled = Some(Instant::now());
                self.driver.cancel(id, false);
            }
            let is_over = |since: Instant| since.elapsed() > limits.grace + PATIENCE;
            if !killed && (limits.kill.is_cancelled() || cancelled.is_some_and(is_over)) {
                killed = true;
                cancelled = Some(Instant::now());
                self.driver.cancel(id, true);
            }
            if killed && cancelled.is_some_and(|since| since.elapsed() > PATIENCE) {
                self.driver.forget(id);
                break TaskEnd::cancelled();
            }
        };
        let end = self.judge(job, heard.result.take(), &end, cancelled.is_some());
        heard.ended(end)
    }

    /// Passes a batch of a task on, and returns the task's end if the batch has it.
    fn take(&self, batch: Batch, heard: &mut Heard, events: &dyn EventSink) -> Option<TaskEnd> {
        let short = |id: String| id.chars().take(SHOWN).collect::<String>();
        if let Some(task) = batch.job {
            heard.task = short(task);
        }
        if let (Some(node), Some(host)) = (batch.node, batch.host) {
            let node = short(node);
            events.emit(StageEvent::Log {
                line: format!("runs on {host}, node {node} of Ray"),
            });
            heard.node = Some(node);
        }
        if let Some(message) = batch.warning {
            events.emit(StageEvent::Warning { message, hint: None });
        }
        for line in batch.lines {
            match Message::parse(line.as_bytes()) {
                Some(Message::Upstream(report)) => {
                    if let Some(upstream) = self.store.upstream() {
                        upstream.merge_report(report);
                    }
                }
                Some(Message::Done(done)) => heard.result = Some(Ok(done)),
                Some(Message::Failed(err)) => heard.result = Some(Err(err)),
                Some(message) => {
                    let event = message.into_event();
                    if let Some(StageEvent::Progress { done, .. }) = event {
                        let first = heard.steps.map_or(done, |(first, _)| first);
                        heard.steps = Some((first, done));
                    }
                    event.into_iter().for_each(|event| events.emit(event));
                }
                None => events.emit(StageEvent::Log { line }),
            }
        }
        batch.end
    }

    /// The end of an attempt.
    fn judge(
        &self,
        job: &Job,
        result: Option<Result<Done, StageError>>,
        end: &TaskEnd,
        is_ours: bool,
    ) -> End {
        match (result, end.kind.as_str()) {
            // Its outputs are in the store, whatever became of the task then.
            (Some(Ok(done)), _) => End::Done(Box::new(done)),
            (_, _) if is_ours => End::Interrupted,
            (_, "memory") => End::OutOfMemory,
            // An input that is here was missing there: it is uploaded again.
            (Some(Err(err)), _) if err.cause == Cause::DamagedInput => {
                let inputs = self.store.blobs_of(job.inputs.values().flatten().copied());
                match inputs.is_ok_and(|inputs| inputs.iter().all(|blob| self.store.blob(blob.blob).is_ok()))
                {
                    true => End::Machine(StageError {
                        cause: Cause::Store,
                        ..err
                    }),
                    false => End::Failed(err),
                }
            }
            (Some(Err(err)), _) if err.cause == Cause::Store => End::Machine(err),
            (Some(Err(err)), _) => End::Failed(err),
            (None, "exit") => {
                let tail: String = end.tail.iter().map(|line| format!("\n    | {line}")).collect();
                End::Died(format!("status {}{tail}", end.status))
            }
            (None, "unusable") => End::Machine(
                StageError::new(format!("its node cannot run the program: {}", end.what))
                    .hint("`program:` of the executor names a copy that the nodes have"),
            ),
            (None, "cancelled") => End::Cancelled { by: None },
            (None, "node") => End::NodeFailed,
            (None, "worker") => End::Died("its worker process of Ray was killed".to_owned()),
            (None, "lost") => End::Vanished,
            (None, "refused") => End::Refused(StageError::new(format!("Ray refuses it: {}", end.what))),
            (None, _) => End::Machine(StageError::new(format!("Ray: {}", end.what))),
        }
    }
}

impl Heard {
    fn ended(self, end: End) -> Ended {
        Ended {
            end,
            job: self.task,
            node: self.node,
            steps: self.steps,
        }
    }
}

/// The error of a remote store that does not take the inputs of a job.
fn unreachable(why: &str) -> StageError {
    let why = if why.is_empty() {
        String::new()
    } else {
        format!(": {why}")
    };
    StageError {
        message: format!("its inputs cannot be uploaded to the remote store{why}"),
        hint: Some(
            "the nodes read inputs there: run again when it answers; what is done stays done".to_owned(),
        ),
        cause: Cause::Store,
    }
}
