//! The worker's side of a worker process.

use super::job::Job;
use super::protocol::{Message, Reply, STOP};
use super::run_job::run_kind;
use crate::text;
use cache::{OpenUpstream, Store, TransferStats};
use runner_sandbox::{USAGE, tree_cpu, tree_memory};
use serde_json::Value;
use stages_core::{AnyStage, CancelToken, EventSink, RunParts, StageError, StageEvent};
use std::collections::BTreeMap;
use std::io::{BufRead as _, Write as _, stdin, stdout};
use std::process::exit;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Writes events to standard output. Each line is one write, under the lock of standard output.
pub(super) struct Lines;

impl Lines {
    pub(super) fn write(&self, message: &Message) {
        let line = message.to_line();
        let mut out = stdout().lock();
        // An error means that the engine has exited; end of file on standard input reports that too.
        let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    }
}

impl EventSink for Lines {
    fn emit(&self, event: StageEvent) {
        self.write(&Message::event(event));
    }
}

fn stop_reads(store: Option<&Store>) {
    if let Some(upstream) = store.and_then(Store::upstream) {
        upstream.stop_reads();
    }
}

/// The parts that this worker has given to the engine.
#[derive(Default)]
struct Parts(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    made: u64,
    replies: BTreeMap<u64, Sender<Result<(), StageError>>>,
    is_cancelled: bool,
}

impl Parts {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a line of the engine, if it is an answer.
    fn take(&self, line: &str) {
        if let Ok(Reply { part, error }) = serde_json::from_str(line)
            && let Some(sender) = self.waiting().replies.remove(&part)
        {
            let _ = sender.send(error.map_or(Ok(()), Err));
        }
    }

    /// Ends the wait for all answers: the engine stops the parts.
    fn cancel(&self) {
        let mut waiting = self.waiting();
        waiting.is_cancelled = true;
        waiting.replies.clear();
    }
}

impl RunParts for Parts {
    fn run(&self, parts: Vec<Value>) -> Result<(), StageError> {
        let mut answers = Vec::new();
        for part in parts {
            let (sender, answer) = channel();
            let number = {
                let mut waiting = self.waiting();
                if waiting.is_cancelled {
                    return Err(StageError::interrupted());
                }
                waiting.made += 1;
                let number = waiting.made;
                waiting.replies.insert(number, sender);
                number
            };
            Lines.write(&Message::Part(number, part));
            answers.push(answer);
        }
        let ended = answers.into_iter().map(|answer| match answer.recv() {
            Ok(ended) => ended,
            Err(_) => Err(StageError::interrupted()),
        });
        // All are waited for: what one has made stays, also where another fails.
        ended.collect::<Vec<_>>().into_iter().collect()
    }
}

/// Reads a job from standard input, runs it, and writes its events and result to standard output. Exits when
/// its parent does.
pub fn worker(kinds: &'static [Box<dyn AnyStage>], open_upstream: OpenUpstream) -> u8 {
    let mut line = String::new();
    if stdin().read_line(&mut line).is_err() {
        return 2;
    }
    let Ok(job) = serde_json::from_str::<Job>(&line) else {
        Lines.write(&Message::Failed(StageError::new("the worker cannot read its job")));
        return 2;
    };
    let cancel = CancelToken::default();
    let parts = Arc::new(Parts::default());
    let opened = Arc::new(OnceLock::<Store>::new());
    end_with_parent();
    // It only reports.
    let _ = Builder::new().spawn(report_usage);
    {
        let (cancel, store, replies) = (cancel.clone(), opened.clone(), parts.clone());
        let listen = move || {
            // Reads until end of file, when the parent closes the pipe or exits for any reason.
            for line in stdin().lock().lines() {
                match line {
                    Ok(line) if line == STOP => {
                        cancel.cancel();
                        stop_reads(store.get());
                        replies.cancel();
                    }
                    Ok(line) => replies.take(&line),
                    Err(_) => break,
                }
            }
            exit(1);
        };
        if let Err(err) = Builder::new().spawn(listen) {
            Lines.write(&Message::Failed(StageError::new(format!(
                "cannot start a thread: {err}"
            ))));
            return 1;
        }
    }
    prefer_as_victim();
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(job.threads.max(1))
        .build_global();
    let events: Arc<dyn EventSink> = Arc::new(Lines);
    let result = match pool {
        Ok(()) => job
            .open_store(open_upstream)
            .map_err(StageError::from)
            .and_then(|store| {
                // The engine holds a guard against garbage collection, but may be killed shortly before this
                // process is.
                let _guard = store.guard()?;
                if let Some(upstream) = store.upstream() {
                    upstream.watch(Box::new(fetched(events.clone())));
                }
                let _ = opened.set(store.clone());
                if cancel.is_cancelled() {
                    stop_reads(Some(&store));
                }
                let parts = job.has_parts.then(|| parts.clone() as Arc<dyn RunParts>);
                let result = run_kind(&job, &store, kinds, &events, &cancel, parts);
                if let Some(upstream) = store.upstream() {
                    Lines.write(&Message::Upstream(upstream.worker_report()));
                }
                result
            }),
        Err(err) => Err(StageError::new(format!("cannot start threads: {err}"))),
    };
    let code = u8::from(result.is_err());
    Lines.write(&match result {
        Ok(done) => Message::Done(done),
        Err(err) => Message::Failed(err),
    });
    code
}

/// Reports the amount of data fetched from the remote store, rate-limited.
fn fetched(events: Arc<dyn EventSink>) -> impl Fn(TransferStats) + Send + Sync {
    let last = Mutex::new(Instant::now());
    move |stats| {
        let Ok(mut last) = last.try_lock() else { return };
        if last.elapsed() >= Duration::from_millis(200) {
            *last = Instant::now();
            events.emit(StageEvent::Progress {
                done: 0,
                total: None,
                message: format!("fetched {} from the remote store", text::size(stats.moved_bytes)),
            });
        }
    }
}

/// Reports this process's resource usage every second.
fn report_usage() {
    loop {
        std::thread::sleep(USAGE);
        let pid = std::process::id();
        Lines.emit(StageEvent::Usage {
            cpu_seconds: tree_cpu(pid),
            memory: tree_memory(pid),
        });
    }
}

/// Requests a kill signal when the parent exits: a busy process may not notice end of file on standard input.
pub(super) fn end_with_parent() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, set_parent_process_death_signal};
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
    }
}

/// Makes this process the preferred victim of the out-of-memory killer, rather than the engine.
fn prefer_as_victim() {
    #[cfg(target_os = "linux")]
    let _ = std::fs::write("/proc/self/oom_score_adj", "500");
}
