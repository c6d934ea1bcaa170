//! Running a stage kind in this process.

use super::failure::panicked;
use super::job::{Done, Job, JobWork};
use super::probe;
use cache::{Artifact, ArtifactDigest, Store};
use runner_sandbox::peak_memory;
use stages_core::{AnyStage, CancelToken, Context, EventSink, Input, RunParts, StageError, StageEvent};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The maximum size of a stage's own log lines, in bytes.
const LOG_LIMIT: usize = 4 << 20;

/// Forwards a stage's events: rate-limits progress, and keeps a copy of the log lines.
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

/// The input artifacts with these digests, by port.
pub(crate) fn inputs(
    digests: &BTreeMap<String, Vec<ArtifactDigest>>,
    store: &Store,
) -> Result<BTreeMap<String, Vec<Input>>, StageError> {
    let mut inputs: BTreeMap<String, Vec<Input>> = BTreeMap::new();
    for (port, digests) in digests {
        for &digest in digests {
            let artifact: Artifact = store.artifact(digest)?;
            inputs.entry(port.clone()).or_default().push(Input { digest, artifact });
        }
    }
    Ok(inputs)
}

/// Runs the stage kind of a job in this process, until `cancel` is cancelled.
pub(super) fn run_kind(
    job: &Job,
    store: &Store,
    kinds: &'static [Box<dyn AnyStage>],
    events: &Arc<dyn EventSink>,
    cancel: &CancelToken,
    parts: Option<Arc<dyn RunParts>>,
) -> Result<Done, StageError> {
    let (name, version, config) = match &job.work {
        JobWork::Kind { name, version, config } => (name, version, config),
        JobWork::Probe => return probe::answer(job, store),
        JobWork::Command(_) => return Err(StageError::new("a worker runs no programs")),
    };
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
        inputs: inputs(&job.inputs, store)?,
        sources: job.sources.clone(),
        threads: job.threads,
        fresh: job.fresh,
        events: tap.clone(),
        cancel: cancel.clone(),
        parts,
        ..Context::new(job.key, store.clone())
    };
    let run = || match &job.part {
        Some(part) => kind.run_part(config, &context, part.clone()).map(|()| BTreeMap::new()),
        None => kind.run(config, &context),
    };
    let outputs =
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(panicked(panic.as_ref())))?;
    for port in kind.ports().outputs {
        if job.part.is_none() && !outputs.contains_key(port.name) {
            return Err(StageError::new(format!("`{name}` produced no output `{}`", port.name)));
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
        log: match log.is_empty() {
            true => None,
            false => Some(store.put(log.as_bytes())?),
        },
        peak_memory: peak_memory(),
        numerics_class: context.numerics_class.get().cloned(),
        ..Done::default()
    })
}

/// The maximum number of computed parts named in the log.
const NAMED: usize = 20;

/// A log line that lists the computed parts if others were memoised.
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
