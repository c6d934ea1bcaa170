//! A job on a machine of a cluster: it runs as on the engine's machine, and its results have left the machine
//! before it reports success.

use super::job::{Done, Executor as _, Job, JobStore, Place};
use super::limits::Limits;
use super::worker_process::WorkerProcess;
use crate::options::Control;
use cache::{OpenUpstream, Store, WorkerReport};
use stages_core::error::Cause;
use stages_core::typed_output::FileType;
use stages_core::{EventSink, StageError};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time that a job has to write a checkpoint once it is asked to stop.
const GRACE: Duration = Duration::from_secs(100);

/// The name of this machine.
pub(super) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Runs a job until `control` cancels it. A failure comes with the report on the upstream, for the engine.
pub(super) fn run_on_node(
    job: &Job,
    file_types: &'static [FileType],
    open_upstream: OpenUpstream,
    events: &Arc<dyn EventSink>,
    control: &Control,
) -> Result<Done, Box<(StageError, WorkerReport)>> {
    let started = Instant::now();
    let limits = Limits {
        cancel: control.cancel.clone(),
        kill: control.kill.clone(),
        timeout: job.request.timeout,
        grace: GRACE,
    };
    let store = job
        .open_store(open_upstream)
        .map_err(|err| Box::new((err.into(), WorkerReport::default())))?;
    let done = run(job, &store, file_types, events, &limits).map_err(|err| {
        let report = store.upstream().map(cache::Upstream::worker_report);
        Box::new((err, report.unwrap_or_default()))
    })?;
    if let JobStore::Node { bound, .. } = job.store {
        // Its only purpose is to save fetches.
        let _ = store.shrink(bound);
    }
    Ok(Done {
        numerics_class: done
            .numerics_class
            .or_else(|| Some(stages_numerics::class::numerics_class())),
        seconds: Some(started.elapsed().as_secs_f64()),
        place: Some(Place {
            host: host(),
            ..Place::default()
        }),
        ..done
    })
}

fn run(
    job: &Job,
    store: &Store,
    file_types: &'static [FileType],
    events: &Arc<dyn EventSink>,
    limits: &Limits,
) -> Result<Done, StageError> {
    // The engine may be gone; its files must stay for as long as this job runs.
    let _guard = store.guard()?;
    let is_node = matches!(job.store, JobStore::Node { .. });
    if is_node {
        // Whoever opens an input reports that it is missing.
        let inputs = store.blobs_of(job.inputs.values().flatten().copied());
        store.note_use(inputs.unwrap_or_default())?;
    }
    let executor = WorkerProcess::new(store, file_types)
        .map_err(|err| StageError::new(format!("cannot determine the path of this program: {err}")))?;
    let done = executor.run(job, events, limits).map_err(|err| StageError {
        // The fault of this machine, or of somebody on it: another may do better.
        cause: if executor.was_killed() { Cause::Store } else { err.cause },
        ..err
    })?;
    if is_node {
        return send(store, done);
    }
    store.flush()?;
    Ok(done)
}

/// Uploads a job's results, and returns them with the report for the engine, which writes their records.
fn send(store: &Store, mut done: Done) -> Result<Done, StageError> {
    let Some(upstream) = store.upstream() else {
        return Err(StageError::new("no remote store is configured for this machine"));
    };
    let memos = std::mem::take(&mut done.upstream.memos);
    upstream.merge_report(std::mem::take(&mut done.upstream));
    let mut report = upstream.worker_report();
    report.memos.extend(memos);
    let mut sent = store.blobs_of(done.outputs.values().copied())?;
    sent.extend(done.log);
    sent.extend(report.memos.iter().map(|memo| memo.value));
    let absent = upstream.send(&sent)?;
    if !absent.is_empty() {
        let why = upstream.take_warnings().into_iter().next().unwrap_or_default();
        return Err(StageError {
            message: format!("{} of its results were not uploaded: {why}", absent.len()),
            hint: Some(
                "the nodes must reach the remote store; credentials come from their environment".to_owned(),
            ),
            cause: Cause::Store,
        });
    }
    report.sent = sent;
    report.stats = upstream.stats();
    done.upstream = report;
    Ok(done)
}
