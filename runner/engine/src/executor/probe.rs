//! A trivial job that tells what the machine that runs it is, and shows that its way to the store works.

use super::job::{Done, Executor, Job, JobStore, JobWork, Request};
use super::limits::Limits;
use super::run_job::inputs;
use cache::{ArtifactBuilder, BlobDigest, BlobRef, KeyHasher, Store, Upstream};
use runner_sandbox::{machine_cores, machine_memory, this_program};
use serde::{Deserialize, Serialize};
use serde_json::json;
use stages_core::{EventSink, StageError};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The port of the question, and the output of the answer.
const QUESTION: &str = "question";
const ANSWER: &str = "answer";

/// The number of questions that this process has asked: no two are the same.
static ASKED: AtomicU64 = AtomicU64::new(0);

/// A machine's description of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Its name.
    pub host: String,
    /// The version of the program on it.
    pub version: String,
    /// The digest of the program's file.
    pub program: BlobDigest,
    /// The time of its clock in seconds since 1970.
    pub clock: f64,
    /// Its numerics class.
    pub numerics_class: String,
    /// The number of cores that the job may use.
    pub cores: usize,
    /// Its memory in bytes.
    pub memory: Option<u64>,
    /// The free space of its directory for temporary files, in bytes.
    pub temporary_space: Option<u64>,
    /// The bytes of the question, which must be those that were asked.
    pub question: String,
}

impl Machine {
    /// This machine.
    pub fn here(question: String) -> Result<Self, StageError> {
        let program = this_program()
            .map_err(|err| StageError::new(format!("cannot determine the path of this program: {err}")))?;
        let disk = rustix::fs::statvfs(std::env::temp_dir()).ok();
        Ok(Self {
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            program: BlobRef::of_file(&program)?.blob,
            clock: clock(),
            numerics_class: stages_numerics::class::numerics_class(),
            cores: machine_cores(),
            memory: machine_memory(),
            temporary_space: disk.map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)),
            question,
        })
    }
}

/// The time of this machine's clock in seconds since 1970.
pub fn clock() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64()
}

/// Runs a trivial job on an executor: the machine that ran it reads an artifact that was written here, and
/// its answer is read here.
///
/// # Errors
/// If the job fails, or one of the two sides does not see what the other has written.
pub fn probe(
    executor: &dyn Executor,
    store: &Store,
    job_store: JobStore,
    log: PathBuf,
    events: &Arc<dyn EventSink>,
    limits: &Limits,
) -> Result<(Machine, Done), StageError> {
    let number = ASKED.fetch_add(1, Ordering::Relaxed);
    let question = format!("{} {} {number}", std::process::id(), clock());
    let mut asked = ArtifactBuilder::new(store, "probe", json!(null));
    asked.bytes(QUESTION, question.as_bytes())?;
    let job = Job {
        key: KeyHasher::new("runner 2026-11 probe v1")
            .field(question.as_bytes())
            .action_key(),
        stage: "doctor".to_owned(),
        home: store.root().to_owned(),
        store: job_store,
        request: Request::default(),
        work: JobWork::Probe,
        inputs: BTreeMap::from([(QUESTION.to_owned(), vec![asked.finish()?])]),
        sources: Vec::new(),
        threads: 1,
        part: None,
        has_parts: false,
        fresh: false,
        log,
        upstream: store.upstream().and_then(Upstream::worker_settings),
    };
    let done = executor.run(&job, events, limits)?;
    let answer = done
        .outputs
        .get(ANSWER)
        .ok_or_else(|| StageError::new("the job did not answer"))?;
    let machine: Machine = serde_json::from_value(store.artifact(*answer)?.meta)
        .map_err(|err| StageError::new(format!("the job's answer cannot be read: {err}")))?;
    if machine.question != question {
        return Err(StageError::new(
            "the machine did not read the bytes that were written here",
        ));
    }
    Ok((machine, done))
}

/// Answers on the machine that runs the job.
pub(super) fn answer(job: &Job, store: &Store) -> Result<Done, StageError> {
    let inputs = inputs(&job.inputs, store)?;
    let asked = inputs.get(QUESTION).and_then(|inputs| inputs.first());
    let entry = asked.and_then(|input| input.artifact.entries.first());
    let entry = entry.ok_or_else(|| StageError::new("the job asks nothing"))?;
    let question = String::from_utf8_lossy(&store.blob(entry.blob)?).into_owned();
    let machine = json!(Machine::here(question)?);
    let answer = ArtifactBuilder::new(store, "probe", machine).finish()?;
    Ok(Done {
        outputs: BTreeMap::from([(ANSWER.to_owned(), answer)]),
        ..Done::default()
    })
}
