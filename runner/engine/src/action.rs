//! Execution of one action, in its own thread: runs it and writes its record.

use crate::event::timestamp;
use crate::executor::{Executor, Job, JobStore, JobWork, Limits, NAMESPACES, Program, Request, RunPart};
use crate::key::Recipe;
use crate::options::Options;
use crate::prepare::Prepared;
use crate::text;
use cache::{
    ActionRecord, Artifact, ArtifactDigest, BlobRef, Hit, KeyHasher, Store, Upstream, WorkerReport,
    canonical_json,
};
use runner_pipeline::{Node, Work};
use serde::Deserialize as _;
use serde_json::{Value, json};
use stages_core::error::Cause;
use stages_core::python::installed_packages;
use stages_core::{EventSink, Source, StageError, StageEvent};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

/// The outcome of an action.
pub(crate) enum Outcome {
    /// The action ran, and its record is in the store.
    Ran(Box<Hit>),
    /// The action failed.
    Failed(StageError),
    /// The action found inputs missing or damaged: the error and their digests.
    Damaged(StageError, Vec<ArtifactDigest>),
}

/// The mode in which an action runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// With everything in the store: memos and checkpoints are used.
    Usual,
    /// From scratch, without memos and checkpoints.
    Fresh,
    /// From scratch, and without writing a record: the determinism check.
    Check,
}

/// An action to run.
pub(crate) struct Action<'a> {
    pub node: &'a Node,
    pub prepared: &'a Prepared,
    pub threads: usize,
    pub mode: Mode,
    pub store: &'a Store,
    pub executor: &'a dyn Executor,
    /// The executor of this machine.
    pub here: &'a dyn Executor,
    /// The executor's name, if it is not this machine.
    pub site: Option<&'a str>,
    /// The store that its job opens.
    pub job_store: JobStore,
    pub request: Request,
    pub options: &'a Options,
}

/// Runs an action.
pub(crate) fn run(action: &Action<'_>, limits: &Limits, events: &Arc<dyn EventSink>) -> Outcome {
    match try_run(action, limits, events) {
        Ok(hit) => Outcome::Ran(Box::new(hit)),
        Err(err) if err.cause == Cause::DamagedInput => {
            let inputs = action.prepared.recipe.inputs.values().flatten().copied();
            Outcome::Damaged(err, damaged(action.store, inputs))
        }
        Err(err) => Outcome::Failed(err),
    }
}

fn try_run(action: &Action<'_>, limits: &Limits, events: &Arc<dyn EventSink>) -> Result<Hit, StageError> {
    let (node, prepared, store, options) = (action.node, action.prepared, action.store, action.options);
    let started = Instant::now();
    let began = SystemTime::now();
    // The sources with the digests that the key was computed from.
    let keyed = prepared.sources.iter().zip(&prepared.recipe.sources);
    let sources = keyed.map(|(source, known)| Source {
        digest: Some(known.blob),
        ..source.clone()
    });
    let has_parts = matches!(&node.work, Work::Kind { kind, .. } if kind.has_parts());
    let has_parts = has_parts && action.site.is_some() && action.mode == Mode::Usual;
    let job = Job {
        part: None,
        has_parts,
        key: prepared.key,
        stage: node.id.clone(),
        home: store.root().to_owned(),
        store: action.job_store.clone(),
        request: action.request.clone(),
        work: work(node, prepared, options),
        inputs: prepared.recipe.inputs.clone(),
        sources: sources.collect(),
        threads: action.threads,
        fresh: action.mode != Mode::Usual,
        log: options.logs.join(format!("{}.log", text::file_name(&node.id))),
        upstream: store.upstream().and_then(Upstream::worker_settings),
    };
    let done = if has_parts {
        // The stage itself runs here, and gives parts of its work to the others.
        let here = Job {
            store: JobStore::beside(store),
            ..job.clone()
        };
        let parts = Parts {
            action,
            job,
            events: Arc::new(PartEvents(events.clone())),
            limits,
        };
        action.here.run_with_parts(&here, events, limits, &parts)?
    } else {
        action.executor.run(&job, events, limits)?
    };
    let memos = done.upstream.memos.clone();
    take_report(action, done.upstream)?;
    // A source file may have been edited while the stage ran; the result then does not match the key.
    if let Some(source) = prepared.changed(store, options.verify_inputs)? {
        return Err(source.changed());
    }
    if let Work::Command(command) = &node.work
        && let Some(python) = &command.python
        && installed_packages(&python.sites) != python.packages
    {
        return Err(StageError::new("the packages of its Python changed while it ran")
            .hint("run it again: the versions of the packages are part of the key"));
    }
    let seconds = done.seconds.unwrap_or_else(|| started.elapsed().as_secs_f64());
    if action.mode == Mode::Check {
        return Ok(Hit {
            key: prepared.key,
            outputs: done.outputs,
            log: done.log,
            seconds,
            peak_memory: done.peak_memory,
            blobs: Vec::new(),
        });
    }
    let own_host = || rustix::system::uname().nodename().to_string_lossy().into_owned();
    let host = done.place.as_ref().map_or_else(own_host, |place| place.host.clone());
    let mut info = BTreeMap::from([
        ("run".to_owned(), json!(options.run)),
        ("stage".to_owned(), json!(node.id)),
        ("started".to_owned(), json!(timestamp(began.into()))),
        ("threads".to_owned(), json!(action.threads)),
        ("host".to_owned(), json!(host)),
    ]);
    if let Some(site) = action.site {
        info.insert("executor".to_owned(), json!(site));
        info.insert("job".to_owned(), json!(done.place.as_ref().map(|place| &place.job)));
    }
    if let Some(isolation) = &done.isolation {
        info.insert("isolation".to_owned(), json!(isolation));
        // `null` tells that they could not be observed.
        info.insert("executed".to_owned(), json!(done.executed));
        // `null` tells that there was none, or that it was not enforced.
        info.insert("memory_limit".to_owned(), json!(done.memory_limit));
    }
    let record = ActionRecord {
        key: prepared.key,
        recipe: prepared.recipe.to_json(),
        outputs: done.outputs,
        log: done.log,
        seconds,
        peak_memory: done.peak_memory,
        numerics_class: done
            .numerics_class
            .unwrap_or_else(stages_numerics::class::numerics_class),
        program: options.program.clone(),
        sources: prepared.fetched.clone(),
        info,
    };
    let hit = store.put_action(&record)?;
    store.upload_later(prepared.key, &memos);
    Ok(hit)
}

/// Takes over what a worker reports of the upstream store.
fn take_report(action: &Action<'_>, report: WorkerReport) -> Result<(), StageError> {
    let memos = match action.job_store {
        // The node's own records of its memos are of no use to others.
        JobStore::Node { .. } => report.memos.clone(),
        JobStore::Here | JobStore::Shared { .. } => Vec::new(),
    };
    if let Some(upstream) = action.store.upstream() {
        upstream.merge_report(report);
    }
    for memo in &memos {
        action.store.put_memo(memo.key, memo.value)?;
    }
    Ok(())
}

/// The parts of an action, which run on the executor of other machines.
struct Parts<'a> {
    action: &'a Action<'a>,
    /// The job of the whole action.
    job: Job,
    events: Arc<dyn EventSink>,
    limits: &'a Limits,
}

impl RunPart for Parts<'_> {
    fn run(&self, part: Value) -> Result<(), StageError> {
        let key = KeyHasher::new("runner 2026-11 part v1")
            .field(self.job.key.as_bytes())
            .field(canonical_json(&part))
            .action_key();
        if let (JobStore::Node { .. }, Some(upstream)) =
            (&self.action.job_store, self.action.store.upstream())
        {
            // What it goes on from may have been made here.
            let mut needed = blobs_of(&part);
            needed.retain(|blob| self.action.store.has_here(*blob));
            upstream.send(&needed)?;
        }
        let job = Job {
            key,
            part: Some(part),
            has_parts: false,
            ..self.job.clone()
        };
        let done = self.action.executor.run(&job, &self.events, self.limits)?;
        take_report(self.action, done.upstream)
    }
}

/// The blobs that a part names, wherever in it.
fn blobs_of(part: &Value) -> Vec<BlobRef> {
    if let Ok(blob) = BlobRef::deserialize(part) {
        return vec![blob];
    }
    match part {
        Value::Array(items) => items.iter().flat_map(blobs_of).collect(),
        Value::Object(fields) => fields.values().flat_map(blobs_of).collect(),
        _ => Vec::new(),
    }
}

/// Passes on the events of parts, without those that tell of the stage as a whole.
struct PartEvents(Arc<dyn EventSink>);

impl EventSink for PartEvents {
    fn emit(&self, event: StageEvent) {
        match event {
            StageEvent::Progress { .. } | StageEvent::Usage { .. } | StageEvent::Memo { .. } => {}
            event => self.0.emit(event),
        }
    }
}

/// The variables by which programs and containers are found.
const HOST_ENV: &str = "CONTAINERS_CONF CONTAINERS_STORAGE_CONF CONTAINER_HOST DOCKER_CERT_PATH DOCKER_CONFIG \
                        DOCKER_CONTEXT DOCKER_HOST DOCKER_TLS_VERIFY HOME PATH REGISTRY_AUTH_FILE \
                        XDG_RUNTIME_DIR";

fn work(node: &Node, prepared: &Prepared, options: &Options) -> JobWork {
    match &node.work {
        Work::Kind { kind, config } => JobWork::Kind {
            name: kind.name().to_owned(),
            version: kind.version(),
            config: config.clone(),
        },
        Work::Command(command) => {
            let mut env = command.env.clone();
            let secrets = command.secrets.iter();
            env.extend(secrets.filter_map(|name| Some((name.clone(), options.env.get(name)?.clone()))));
            let code = Recipe {
                inputs: BTreeMap::new(),
                ..prepared.recipe.clone()
            };
            JobWork::Command(Box::new(Program {
                command: Arc::clone(command),
                env,
                isolation: options.isolation.of(command.isolation),
                code: code.key(),
                memory: node.resources.memory,
                host_env: HOST_ENV
                    .split(' ')
                    .chain([NAMESPACES])
                    .filter_map(|name| Some((name.to_owned(), options.env.get(name)?.clone())))
                    .collect(),
                base: node.base.to_path_buf(),
            }))
        }
    }
}

/// The digests of those artifacts whose manifest or one of whose files is missing or damaged.
fn damaged(store: &Store, digests: impl IntoIterator<Item = ArtifactDigest>) -> Vec<ArtifactDigest> {
    let sound = |artifact: &Artifact| artifact.entries.iter().all(|entry| store.blob(entry.blob).is_ok());
    digests
        .into_iter()
        .filter(|&digest| !store.artifact(digest).is_ok_and(|artifact| sound(&artifact)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_blobs_that_a_part_names_are_found() {
        let blobs = [BlobRef::of(b"a"), BlobRef::of(b"b")];
        let part = json!({ "from": [blobs[0], 7], "more": { "deep": [[blobs[1]]] }, "step": 3 });
        assert_eq!(blobs_of(&part), blobs);
        assert!(blobs_of(&json!({ "from": null, "blob": "x", "size": 1 })).is_empty());
    }
}
