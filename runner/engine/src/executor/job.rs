//! An action to run, and running it.

use super::peak_memory;
use super::workspace_pool::WorkspacePool;
use super::{Limits, command};
use crate::key::RUN;
use cache::{ActionKey, Artifact, ArtifactDigest, BlobRef, OpenUpstream, Store, WorkerReport, WorkerSettings};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stages_core::{AnyStage, Context, EventSink, Input, Outputs, Source, StageError, StageEvent};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// An action: all that a worker has to know.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// Its key.
    pub key: ActionKey,
    /// The stage that asks for it, for messages.
    pub stage: String,
    /// The folder of the store.
    pub home: PathBuf,
    /// What to do.
    pub work: JobWork,
    /// The input artifacts, by port.
    pub inputs: BTreeMap<String, Vec<ArtifactDigest>>,
    /// The files outside the store that it reads.
    pub sources: Vec<Source>,
    /// How many threads it may use.
    pub threads: usize,
    /// Whether it computes from nothing, without memos and checkpoints of earlier work.
    #[serde(default)]
    pub fresh: bool,
    /// Where an external program's output goes; kept there when it fails.
    pub log: PathBuf,
    /// The upstream store that is read through.
    #[serde(default)]
    pub upstream: Option<WorkerSettings>,
}

impl Job {
    /// Opens the store, with its upstream.
    pub(super) fn store(&self, open_upstream: OpenUpstream) -> cache::Result<Store> {
        let store = Store::open(&self.home)?;
        match &self.upstream {
            Some(settings) => {
                let upstream = open_upstream(&store, settings)?;
                Ok(store.with_upstream(upstream))
            }
            None => Ok(store),
        }
    }
}

/// What an action does.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobWork {
    /// A stage kind.
    Kind {
        /// Its name.
        name: String,
        /// Its version.
        version: u32,
        /// Its configuration, defaults filled in.
        config: Value,
    },
    /// An external program.
    Command {
        /// The text for `sh -c`, where `${needs.X}` and `${outputs.X}` are still to be replaced.
        command: String,
        /// Its outputs: name to file name.
        outputs: BTreeMap<String, String>,
        /// The folders of collected inputs, by port.
        points: BTreeMap<String, Vec<String>>,
        /// Its environment, complete.
        env: BTreeMap<String, String>,
        /// The variables of it whose values are hidden in logs.
        secrets: Vec<String>,
    },
}

/// What an action gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// Its output artifacts, by name.
    pub outputs: Outputs,
    /// Its log.
    pub log: Option<BlobRef>,
    /// Peak resident memory in bytes, where known.
    pub peak_memory: Option<u64>,
    /// The numerics class of the outputs, where it is not the processor's.
    #[serde(default)]
    pub numerics_class: Option<String>,
    /// The state of the upstream store at the worker's end.
    #[serde(default)]
    pub upstream: WorkerReport,
}

/// What a log may hold of a stage's own lines, in bytes.
const LOG_LIMIT: usize = 4 << 20;

/// Passes on a stage's events: progress not more often than anyone can read, and a copy of the log's lines kept.
struct Tap {
    events: Arc<dyn EventSink>,
    state: Mutex<(Option<Instant>, String)>,
}

impl EventSink for Tap {
    fn emit(&self, event: StageEvent) {
        {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            match &event {
                StageEvent::Progress { .. } => {
                    let now = Instant::now();
                    if state.0.is_some_and(|last| now - last < Duration::from_millis(100)) {
                        return;
                    }
                    state.0 = Some(now);
                }
                StageEvent::Log { line } if state.1.len() < LOG_LIMIT => {
                    state.1.push_str(line);
                    state.1.push('\n');
                }
                _ => {}
            }
        }
        self.events.emit(event);
    }
}

/// Runs a job in this process. A stage kind is asked to stop by `limits.cancel` alone, an external program is held to all of
/// them. `group` is where an external program's process group is made known while it runs, and `workspaces` removes its folder.
pub(crate) fn run(
    job: &Job,
    store: &Store,
    kinds: &'static [Box<dyn AnyStage>],
    events: &Arc<dyn EventSink>,
    limits: &Limits,
    group: &command::Group,
    workspaces: &WorkspacePool,
) -> Result<Done, StageError> {
    let mut inputs: BTreeMap<String, Vec<Input>> = BTreeMap::new();
    for (port, digests) in &job.inputs {
        for &digest in digests {
            let artifact: Artifact = store.artifact(digest)?;
            inputs.entry(port.clone()).or_default().push(Input { digest, artifact });
        }
    }
    match &job.work {
        JobWork::Command {
            command,
            outputs,
            points,
            env,
            secrets,
        } => {
            let run = command::Run {
                command,
                outputs,
                points,
                env,
                secrets,
                inputs: &inputs,
                files: &job.sources,
                log: &job.log,
            };
            run.execute(store, events.as_ref(), limits, group, workspaces)
        }
        JobWork::Kind { name, version, config } => {
            let kind = kinds
                .iter()
                .find(|kind| kind.name() == name)
                .ok_or_else(|| StageError::new(format!("this program has no stage kind `{name}`")))?;
            if kind.version() != *version {
                return Err(StageError::new(format!(
                    "this program has version {} of `{name}`, not {version}",
                    kind.version()
                )));
            }
            let tap = Arc::new(Tap {
                events: events.clone(),
                state: Mutex::default(),
            });
            let context = Context {
                inputs,
                sources: job.sources.clone(),
                threads: job.threads,
                fresh: job.fresh,
                events: tap.clone(),
                cancel: limits.cancel.clone(),
                ..Context::new(job.key, store.clone())
            };
            let outputs = catch_unwind(AssertUnwindSafe(|| kind.run(config, &context)))
                .unwrap_or_else(|panic| Err(panicked(panic.as_ref())))?;
            for port in kind.ports().outputs {
                if !outputs.contains_key(port.name) {
                    return Err(StageError::new(format!("`{name}` made no output `{}`", port.name)));
                }
            }
            let (hits, total) = context.memos.counts();
            if total > 0 {
                if hits > 0 && hits < total {
                    context.log(computed(&context.memos.names(), total));
                }
                events.emit(StageEvent::Memo { hits, total });
            }
            let log = std::mem::take(&mut tap.state.lock().unwrap_or_else(PoisonError::into_inner).1);
            Ok(Done {
                outputs,
                log: if log.is_empty() {
                    None
                } else {
                    Some(store.put(log.as_bytes())?)
                },
                peak_memory: peak_memory(),
                numerics_class: context.numerics_class.get().cloned(),
                upstream: WorkerReport::default(),
            })
        }
    }
}

/// How many names of what was computed the log holds.
const NAMED: usize = 20;

/// What was computed where something was known already.
fn computed(names: &[String], total: u64) -> String {
    let more = names.len().saturating_sub(NAMED);
    let mut line = format!(
        "computed {} of {total} parts: {}",
        names.len(),
        names[..names.len() - more].join(", ")
    );
    if more > 0 {
        line.push_str(&format!(" and {more} more"));
    }
    line
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> StageError {
    let message = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    StageError::new(format!("the stage panicked: {message}"))
        .hint("this is a mistake in the program; its backtrace is shown with RUST_BACKTRACE=1")
}

/// The kind of a job, for messages.
impl JobWork {
    /// The stage kind; [`RUN`] for an external program.
    pub fn kind(&self) -> &str {
        match self {
            Self::Kind { name, .. } => name,
            Self::Command { .. } => RUN,
        }
    }
}
