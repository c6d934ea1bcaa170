//! The worker's side of a worker process.

use super::job::Job;
use super::protocol::{Message, STOP};
use super::run_job::run_kind;
use crate::text;
use cache::{OpenUpstream, Store, TransferStats};
use runner_sandbox::{USAGE, tree_cpu, tree_memory};
use stages_core::{AnyStage, CancelToken, EventSink, StageError, StageEvent};
use std::io::{BufRead as _, Write as _, stdin, stdout};
use std::process::exit;
use std::sync::{Arc, Mutex, OnceLock};
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
    let opened = Arc::new(OnceLock::<Store>::new());
    end_with_parent();
    // It only reports.
    let _ = Builder::new().spawn(report_usage);
    {
        let (cancel, store) = (cancel.clone(), opened.clone());
        let listen = move || {
            // Reads until end of file, when the parent closes the pipe or exits for any reason.
            for line in stdin().lock().lines() {
                match line {
                    Ok(line) if line == STOP => {
                        cancel.cancel();
                        stop_reads(store.get());
                    }
                    Ok(_) => {}
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
                let result = run_kind(&job, &store, kinds, &events, &cancel);
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
