//! One action, in a thread of its own: run it, and write its record.

use crate::event::timestamp;
use crate::executor::{Executor, Job, JobWork, Limits};
use crate::options::Options;
use crate::prepare::{Prepared, digests};
use crate::text;
use cache::{ActionRecord, Artifact, ArtifactDigest, Hit, Store, Upstream};
use runner_pipeline::{Node, Work};
use serde_json::json;
use stages_core::error::Cause;
use stages_core::{EventSink, Source, StageError};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

/// How an action went.
pub(crate) enum Outcome {
    /// It ran, and its record is in the store.
    Ran(Box<Hit>),
    /// It failed.
    Failed(StageError),
    /// It found an input missing or damaged; these are.
    Damaged(StageError, Vec<ArtifactDigest>),
}

/// How an action is to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// With all that the store has.
    Usual,
    /// From nothing, without memos and checkpoints.
    Fresh,
    /// From nothing, and without a record: determinism check.
    Check,
}

/// Runs the action of `node`.
pub(crate) fn run(
    node: &Node,
    prepared: &Prepared,
    threads: usize,
    mode: Mode,
    store: &Store,
    executor: &dyn Executor,
    options: &Options,
    limits: &Limits,
    events: &Arc<dyn EventSink>,
) -> Outcome {
    match try_run(node, prepared, threads, mode, store, executor, options, limits, events) {
        Ok(hit) => Outcome::Ran(Box::new(hit)),
        Err(err) if err.cause == Cause::DamagedInput => {
            let inputs = prepared.recipe.inputs.values().flatten().copied();
            Outcome::Damaged(err, damaged(store, inputs))
        }
        Err(err) => Outcome::Failed(err),
    }
}

fn try_run(
    node: &Node,
    prepared: &Prepared,
    threads: usize,
    mode: Mode,
    store: &Store,
    executor: &dyn Executor,
    options: &Options,
    limits: &Limits,
    events: &Arc<dyn EventSink>,
) -> Result<Hit, StageError> {
    let started = Instant::now();
    let began = SystemTime::now();
    let job = Job {
        key: prepared.key,
        stage: node.id.clone(),
        home: store.root().to_owned(),
        work: work(node, options),
        inputs: prepared.recipe.inputs.clone(),
        sources: keyed_sources(prepared),
        threads,
        fresh: mode != Mode::Usual,
        log: log_path(node, options),
        upstream: store.upstream().and_then(Upstream::worker_settings),
    };
    let done = executor.run(&job, events, limits)?;
    let memos = done.upstream.memos.clone();
    if let Some(upstream) = store.upstream() {
        upstream.merge_report(done.upstream);
    }
    // What a stage read may have been edited while it ran: then the result is not the key's.
    let now = digests(store, &prepared.sources, options.verify_inputs)?;
    if let Some((source, _)) = prepared
        .sources
        .iter()
        .zip(now.iter().zip(&prepared.recipe.sources))
        .find(|(_, (now, then))| now != then)
    {
        return Err(source.changed());
    }
    let seconds = started.elapsed().as_secs_f64();
    if mode == Mode::Check {
        return Ok(Hit {
            outputs: done.outputs.into(),
            log: done.log,
            seconds,
            peak_memory: done.peak_memory,
            blobs: Vec::new(),
        });
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
        info: BTreeMap::from([
            ("run".to_owned(), json!(options.run)),
            ("stage".to_owned(), json!(node.id)),
            ("started".to_owned(), json!(timestamp(began.into()))),
            ("threads".to_owned(), json!(threads)),
            (
                "host".to_owned(),
                json!(rustix::system::uname().nodename().to_string_lossy()),
            ),
        ]),
    };
    let hit = store.put_action(&record)?;
    store.upload_later(prepared.key, &memos);
    Ok(hit)
}

/// The sources with the digests that the key was made of.
fn keyed_sources(prepared: &Prepared) -> Vec<Source> {
    let keyed = prepared.sources.iter().zip(&prepared.recipe.sources);
    keyed
        .map(|(source, known)| Source {
            digest: Some(known.blob),
            ..source.clone()
        })
        .collect()
}

/// Where a stage that does not finish leaves its log.
fn log_path(node: &Node, options: &Options) -> PathBuf {
    options.logs.join(format!("{}.log", text::file_name(&node.id)))
}

fn work(node: &Node, options: &Options) -> JobWork {
    match &node.work {
        Work::Kind { kind, config } => JobWork::Kind {
            name: kind.name().to_owned(),
            version: kind.version(),
            config: config.clone(),
        },
        Work::Command(command) => {
            let mut env: BTreeMap<String, String> = ["PATH", "HOME", "LANG"]
                .into_iter()
                .chain(command.secrets.iter().map(String::as_str))
                .filter_map(|name| Some((name.to_owned(), options.env.get(name)?.clone())))
                .collect();
            env.extend(command.env.clone());
            JobWork::Command {
                command: command.command.clone(),
                outputs: command.outputs.clone(),
                points: command.points.clone(),
                env,
                secrets: command.secrets.clone(),
            }
        }
    }
}

/// Which of these artifacts have a manifest or a file that is missing or damaged.
fn damaged(store: &Store, digests: impl IntoIterator<Item = ArtifactDigest>) -> Vec<ArtifactDigest> {
    let sound = |artifact: &Artifact| artifact.entries.iter().all(|entry| store.blob(entry.blob).is_ok());
    digests
        .into_iter()
        .filter(|&digest| !store.artifact(digest).is_ok_and(|artifact| sound(&artifact)))
        .collect()
}
