//! Jobs in files, as a node of a cluster runs them.

use runner_engine::Control;
use runner_engine::executor::{Done, Job, Limits, Message, beside, job_file_name, run_job_file};
use stages_core::{EventSink, StageError};
use std::sync::Arc;

/// Runs a job in a file, and reads what was written beside it.
pub(crate) fn run(job: &Job, events: &Arc<dyn EventSink>, limits: &Limits) -> Result<Done, StageError> {
    let dir = job.home.join("jobs").join(job.key.to_hex());
    std::fs::create_dir_all(&dir).unwrap();
    let bytes = serde_json::to_vec(job).unwrap();
    let file = dir.join(job_file_name(&bytes));
    std::fs::write(&file, bytes).unwrap();
    let control = Control {
        cancel: limits.cancel.clone(),
        kill: limits.kill.clone(),
    };
    let code = run_job_file(&file, &[], no_upstream, &control).unwrap();
    let told = std::fs::read(beside(&file, "events")).unwrap();
    for line in told.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let event = Message::parse(line).and_then(Message::into_event);
        events.emit(event.unwrap());
    }
    match Message::parse(&std::fs::read(beside(&file, "result")).unwrap()) {
        Some(Message::Done(done)) if code == 0 => Ok(done),
        Some(Message::Failed(error)) if code == 1 => Err(error),
        other => panic!("{other:?}, with exit code {code}"),
    }
}

/// There is no remote store here.
pub(crate) fn no_upstream(
    _: &cache::Store,
    _: &cache::WorkerSettings,
) -> cache::Result<Arc<dyn cache::Upstream>> {
    unreachable!("the tests have no remote store")
}
