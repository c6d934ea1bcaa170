//! The engine's side of a worker process.

use super::command_run::Run;
use super::failure::signal_name;
use super::isolation::Sandbox;
use super::job::{Done, Executor, Job, JobWork, RunPart};
use super::limits::{Limits, timed_out};
use super::protocol::{Message, Reply, STOP};
use super::run_job::inputs;
use cache::{Store, WorkerReport};
use runner_sandbox::this_program;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde_json::Value;
use stages_core::error::Cause;
use stages_core::typed_output::FileType;
use stages_core::{EventSink, StageError, StageEvent};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Runs each action in its own process: a stage kind in this program, as `runner worker`, an external program
/// in the sandbox. A crash, an out-of-memory kill or a timeout affects no other action, and all processes
/// exit when this one does.
pub struct WorkerProcess {
    /// The path of this program.
    program: PathBuf,
    store: Store,
    file_types: &'static [FileType],
    sandbox: Sandbox,
    /// True once a worker was killed, and not by this program.
    was_killed: AtomicBool,
}

impl WorkerProcess {
    /// True if a worker was killed by the system, or by somebody else.
    pub(super) fn was_killed(&self) -> bool {
        self.was_killed.load(Ordering::Relaxed)
    }

    /// Workers run this same program, even if its file is replaced meanwhile; `file_types` check what
    /// external programs write.
    ///
    /// # Errors
    /// If the system does not report the path of this program.
    pub fn new(store: &Store, file_types: &'static [FileType]) -> std::io::Result<Self> {
        let program = this_program()?;
        Ok(Self {
            sandbox: Sandbox::new(program.clone()),
            program,
            store: store.clone(),
            file_types,
            was_killed: AtomicBool::new(false),
        })
    }
}

/// The settings of glibc's allocator for how much free memory a worker keeps: at the end of each of its
/// arenas, and in blocks of this size.
const KEPT_FREE: [&str; 2] = ["MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"];
/// The value of the [`KEPT_FREE`] settings, in bytes: the largest that every glibc takes.
const KEPT_FREE_BYTES: &str = "33554432";

/// The maximum size of a worker's output lines that are not messages, in bytes.
const TAIL: usize = 16 << 10;

/// A running worker; killed if this is dropped before the worker exits.
struct Worker {
    child: Child,
}

impl Worker {
    fn kill(&mut self) {
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.child.kill();
    }

    /// Waits for the worker, and ends the processes that a user's code has left behind it.
    fn wait(mut self) -> Result<ExitStatus, StageError> {
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            // Until its status is taken, no other group has its number.
            let exited = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            if waitid(WaitId::Pid(pid), exited).is_ok() {
                let _ = kill_process_group(pid, Signal::KILL);
            }
        }
        self.child
            .wait()
            .map_err(|err| StageError::new(format!("cannot wait for the worker: {err}")))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            self.kill();
            let _ = self.child.wait();
        }
    }
}

/// There are no other machines.
struct NoParts;

impl RunPart for NoParts {
    fn run(&self, _: Value) -> Result<(), StageError> {
        Err(StageError::new("no other machine runs parts of this stage"))
    }
}

/// A sign of a worker, or of one of its parts.
#[allow(clippy::large_enum_variant, reason = "few of them exist at a time")]
enum Heard {
    Message(Message),
    /// A line that is no message.
    Line(String),
    /// A part that the worker gave to the engine has ended.
    PartEnded(Reply),
    /// It has closed its standard output.
    End,
}

impl Executor for WorkerProcess {
    fn run(&self, job: &Job, events: &Arc<dyn EventSink>, limits: &Limits) -> Result<Done, StageError> {
        self.run_with_parts(job, events, limits, &NoParts)
    }

    fn run_with_parts(
        &self,
        job: &Job,
        events: &Arc<dyn EventSink>,
        limits: &Limits,
        parts: &dyn RunPart,
    ) -> Result<Done, StageError> {
        if let JobWork::Command(program) = &job.work {
            let started = Instant::now();
            // A large input may take minutes to hash.
            let store = self.store.clone().with_interrupt({
                let limits = limits.clone();
                move || limits.stopped(started).is_err()
            });
            let run = Run {
                command: &program.command,
                program,
                inputs: &inputs(&job.inputs, &store)?,
                files: &job.sources,
                log: &job.log,
                fresh: job.fresh,
                file_types: self.file_types,
                sandbox: &self.sandbox,
                store: &store,
                events: events.as_ref(),
                limits,
                started,
            };
            return run.execute();
        }
        let failed = |what: &str, err: std::io::Error| {
            StageError::new(format!("cannot {what} a worker process: {err}"))
        };
        // This thread lives as long as the worker: the worker's parent-death signal depends on it.
        let child = Command::new(&self.program)
            .arg0("runner")
            .arg("worker")
            .env("RAYON_NUM_THREADS", job.threads.to_string())
            // glibc gives the memory of each table back to the system, which then clears it for the next one.
            .envs(
                KEPT_FREE
                    .into_iter()
                    .filter(|variable| std::env::var_os(variable).is_none())
                    .map(|variable| (variable, KEPT_FREE_BYTES)),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C in a terminal reaches only the engine, which then requests its workers to stop.
            .process_group(0)
            .spawn()
            .map_err(|err| failed("start", err))?;
        let mut worker = Worker { child };
        let (Some(mut stdin), Some(stdout), Some(stderr)) = (
            worker.child.stdin.take(),
            worker.child.stdout.take(),
            worker.child.stderr.take(),
        ) else {
            return Err(StageError::new("a worker process has no pipes"));
        };
        let mut line = serde_json::to_string(job).map_err(|err| failed("ask", err.into()))?;
        line.push('\n');
        // A worker that has already exited is reported below, with its exit status.
        let _ = stdin.write_all(line.as_bytes());
        let (sender, heard) = channel();
        let for_parts = sender.clone();
        let errors = Builder::new().spawn(move || {
            let mut tail = Vec::new();
            let mut reader = BufReader::new(stderr);
            let mut line = Vec::new();
            while matches!((&mut reader).take(TAIL as u64).read_until(b'\n', &mut line), Ok(n) if n > 0) {
                tail.append(&mut line);
                let excess = tail.len().saturating_sub(TAIL);
                tail.drain(..excess);
            }
            String::from_utf8_lossy(&tail).into_owned()
        });
        let errors = errors.map_err(|err| failed("start a thread for", err))?;
        let reader = Builder::new().spawn(move || {
            for line in BufReader::new(stdout).split(b'\n') {
                let Ok(line) = line else { break };
                // Lines that are not messages go to the log.
                let said = match Message::parse(&line) {
                    Some(message) => Heard::Message(message),
                    None => Heard::Line(String::from_utf8_lossy(&line).into_owned()),
                };
                if sender.send(said).is_err() {
                    break;
                }
            }
            let _ = sender.send(Heard::End);
        });
        let reader = reader.map_err(|err| failed("start a thread for", err))?;
        let started = Instant::now();
        let mut asked: Option<Instant> = None;
        let mut over_time = None;
        let mut result = None;
        let mut upstream = WorkerReport::default();
        // Parts that still run when the worker has ended are waited for: what they make stays.
        std::thread::scope(|scope| {
            loop {
                match heard.recv_timeout(Duration::from_millis(50)) {
                    Ok(Heard::Message(Message::Part(number, part))) => {
                        let reply = for_parts.clone();
                        let lost = for_parts.clone();
                        let run = move || {
                            let error = parts.run(part).err();
                            let _ = reply.send(Heard::PartEnded(Reply { part: number, error }));
                        };
                        if let Err(err) = Builder::new().spawn_scoped(scope, run) {
                            let error = Some(failed("start a thread for a part of", err));
                            let _ = lost.send(Heard::PartEnded(Reply { part: number, error }));
                        }
                    }
                    Ok(Heard::PartEnded(reply)) => {
                        let mut line = serde_json::to_string(&reply).unwrap_or_default();
                        line.push('\n');
                        let _ = stdin.write_all(line.as_bytes());
                    }
                    Ok(Heard::Message(Message::Upstream(report))) => upstream = report,
                    Ok(Heard::Message(Message::Done(done))) => result = Some(Ok(done)),
                    Ok(Heard::Message(Message::Failed(err))) => result = Some(Err(err)),
                    Ok(Heard::Message(event)) => {
                        event.into_event().into_iter().for_each(|event| events.emit(event));
                    }
                    Ok(Heard::Line(line)) => events.emit(StageEvent::Log { line }),
                    Ok(Heard::End) | Err(RecvTimeoutError::Disconnected) => break,
                    Err(RecvTimeoutError::Timeout) => {}
                }
                if let Some(limit) = limits.timeout.filter(|limit| started.elapsed() > *limit) {
                    over_time = Some(limit);
                }
                if asked.is_none() && (over_time.is_some() || limits.cancel.is_cancelled()) {
                    asked = Some(Instant::now());
                    let _ = stdin.write_all(format!("{STOP}\n").as_bytes());
                }
                if limits.kill.is_cancelled() || asked.is_some_and(|since| since.elapsed() > limits.grace) {
                    worker.kill();
                }
            }
        });
        let status = worker.wait()?;
        drop(stdin);
        let _ = reader.join();
        let stderr = errors.join().unwrap_or_default();
        if !matches!(result, Some(Ok(_)))
            && let Some(engines) = self.store.upstream()
        {
            engines.merge_report(std::mem::take(&mut upstream));
        }
        match (result, over_time) {
            (Some(Ok(done)), _) => Ok(Done { upstream, ..done }),
            (_, Some(limit)) => Err(timed_out(limit)),
            (Some(Err(err)), None)
                if err.cause == Cause::Failed && err.message.contains("panicked") && !stderr.is_empty() =>
            {
                let mut err = err;
                push_tail(&mut err.message, &stderr);
                Err(err)
            }
            (Some(Err(err)), None) => Err(err),
            (None, None) if limits.cancel.is_cancelled() || limits.kill.is_cancelled() => {
                Err(StageError::interrupted())
            }
            (None, None) => {
                self.was_killed.fetch_or(status.signal() == Some(9), Ordering::Relaxed);
                Err(died(status, &stderr))
            }
        }
    }
}

/// The error of a worker that exited without a result.
fn died(status: ExitStatus, stderr: &str) -> StageError {
    let mut error = match (status.signal(), status.code()) {
        (Some(9), _) => StageError::new(format!("its worker was killed by {}", signal_name(9))).hint(
            "the system kills processes that use too much memory: `resources: { memory: … }` keeps \
                large stages from running in parallel",
        ),
        (Some(signal), _) => StageError::new(format!("its worker was killed by {}", signal_name(signal)))
            .hint("this is a bug in the program or one of its libraries"),
        (None, code) => StageError::new(format!(
            "its worker ended without a result, with status {}",
            code.unwrap_or_default()
        )),
    };
    push_tail(&mut error.message, stderr);
    error
}

fn push_tail(message: &mut String, stderr: &str) {
    let lines: Vec<&str> = stderr.lines().collect();
    for line in &lines[lines.len().saturating_sub(10)..] {
        message.push_str("\n    | ");
        message.push_str(line);
    }
}
