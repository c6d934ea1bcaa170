//! A job in a file, as a cluster's node runs it: `runner worker --job FILE`.
//!
//! FILE is the JSON of a [`Job`], and its name begins with the digest of its bytes. Beside it the node writes
//! `FILE.events`, lines of [`Message`], while the job runs, and in the end `FILE.result`, one such line,
//! renamed into place. The job runs as on the engine's machine: in a worker process, or in the sandbox.

use super::job::{Job, JobStore};
use super::node::{host, run_on_node};
use super::protocol::Message;
use crate::failure::Failure;
use crate::options::Control;
use cache::OpenUpstream;
use stages_core::error::Cause;
use stages_core::typed_output::FileType;
use stages_core::{EventSink, StageError, StageEvent};
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// The interval at which events are written: a reader on another machine sees what a closed file holds.
const WRITES: Duration = Duration::from_secs(1);

/// The interval of the events of resource usage.
pub(super) const USAGES: Duration = Duration::from_secs(10);

/// The maximum number of bytes of events that wait to be written; more are dropped, oldest first.
const PENDING: usize = 8 << 20;

/// The time after the end of a stage in which a signal that ended it also reaches this process.
const SIGNAL: Duration = Duration::from_millis(300);

/// The hint for a missing file of a job.
const UNSEEN: &str = "this machine must see the directory of the store";

/// The file beside a job's with this ending.
pub fn beside(job: &Path, ending: &str) -> PathBuf {
    let mut name = job.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

/// The name of the file of a job with these bytes.
pub fn job_file_name(bytes: &[u8]) -> String {
    format!("{}.json", cache::BlobRef::of(bytes).blob.to_hex())
}

/// Runs the job in a file until `control` cancels it, and writes its events and its result beside it.
/// Returns the exit code: 0 if it succeeded, 1 if it failed.
///
/// # Errors
/// If there is no such job, or its result cannot be written.
pub fn run_job_file(
    file: &Path,
    file_types: &'static [FileType],
    open_upstream: OpenUpstream,
    control: &Control,
) -> Result<u8, Failure> {
    let job = read(file)?;
    let events = Arc::new(EventFile::new(beside(file, "events")));
    let writer = events.clone();
    // Without the thread, events are written when the job ends.
    let _ = Builder::new().spawn(move || {
        loop {
            std::thread::sleep(WRITES);
            writer.write();
        }
    });
    let sink: Arc<dyn EventSink> = events.clone();
    sink.emit(StageEvent::Log {
        line: format!("runs on {}", host()),
    });
    let result = run_on_node(&job, file_types, open_upstream, &sink, control);
    let result = result.map_err(|failed| match failed.0 {
        // A cluster signals all processes of a job: the stage's program may end before this one notices.
        err if err.cause == Cause::Failed && is_stopped(control) => StageError::interrupted(),
        err => err,
    });
    let code = u8::from(result.is_err());
    events.write();
    let message = match result {
        Ok(done) => Message::Done(done),
        Err(err) => Message::Failed(err),
    };
    let result = beside(file, "result");
    write_result(&result, &message).map_err(Failure::at("cannot write", &result))?;
    Ok(code)
}

/// True if this process has been asked to stop, or is so within the time in which a signal is handled.
fn is_stopped(control: &Control) -> bool {
    let since = Instant::now();
    while !control.cancel.is_cancelled() && since.elapsed() < SIGNAL {
        std::thread::sleep(SIGNAL / 10);
    }
    control.cancel.is_cancelled()
}

/// Reads a job, whose bytes must match the digest in the file's name.
fn read(file: &Path) -> Result<Job, Failure> {
    let bytes = fs::read(file).map_err(|err| Failure::at("cannot read", file)(err).hint(UNSEEN))?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let wrong = |what: &str| Failure::machine(format!("the job `{}` {what}", file.display()));
    if name != job_file_name(&bytes) {
        return Err(wrong("is damaged: its bytes do not match its name"));
    }
    let job: Job = serde_json::from_slice(&bytes).map_err(|err| {
        wrong(&format!("cannot be read: {err}")).hint("it was written by another version of the program")
    })?;
    match job.store {
        JobStore::Here => Err(wrong("is one of the engine's own machine")),
        JobStore::Shared { .. } | JobStore::Node { .. } => Ok(job),
    }
}

fn write_result(path: &Path, message: &Message) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::Builder::new().prefix(".result-").tempfile_in(dir)?;
    file.write_all(message.to_line().as_bytes())?;
    cache::flush(file.as_file())?;
    file.persist(path).map_err(|err| err.error)?;
    Ok(())
}

/// Events that are appended to a file at intervals.
struct EventFile {
    path: PathBuf,
    state: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    lines: VecDeque<String>,
    bytes: usize,
    usage: Option<Instant>,
}

impl EventFile {
    fn new(path: PathBuf) -> Self {
        Self {
            path,
            state: Mutex::default(),
        }
    }

    /// Appends the pending events. Events only report: those that cannot be written wait for the next time.
    fn write(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.lines.is_empty() {
            return;
        }
        let text: String = state.lines.iter().map(String::as_str).collect();
        let open = || File::options().append(true).create(true).open(&self.path);
        if open().and_then(|mut file| file.write_all(text.as_bytes())).is_ok() {
            *state = Pending {
                usage: state.usage,
                ..Pending::default()
            };
        }
    }
}

impl EventSink for EventFile {
    fn emit(&self, event: StageEvent) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let StageEvent::Usage { .. } = event {
            if state.usage.is_some_and(|last| last.elapsed() < USAGES) {
                return;
            }
            state.usage = Some(Instant::now());
        }
        let line = Message::event(event).to_line();
        state.bytes += line.len();
        state.lines.push_back(line);
        while state.bytes > PENDING
            && let Some(line) = state.lines.pop_front()
        {
            state.bytes -= line.len();
        }
    }
}

/// Runs the jobs in the files that line `number` (from 0) of a list names, one after the other. The names are
/// separated by blanks, and relative to the list's directory. Returns 0 if all succeeded, and 1 otherwise.
///
/// # Errors
/// As [`run_job_file`], or if the list has no such line.
pub fn run_batch(
    list: &Path,
    number: usize,
    file_types: &'static [FileType],
    open_upstream: OpenUpstream,
    control: &Control,
) -> Result<u8, Failure> {
    let text = fs::read_to_string(list).map_err(|err| Failure::at("cannot read", list)(err).hint(UNSEEN))?;
    let line = text
        .lines()
        .nth(number)
        .ok_or_else(|| Failure::machine(format!("`{}` has no line {}", list.display(), number + 1)))?;
    let dir = list.parent().unwrap_or(Path::new("/"));
    let mut code = 0;
    for name in line.split_ascii_whitespace() {
        if control.cancel.is_cancelled() {
            return Ok(1);
        }
        let file = dir.join(name);
        // A job that the cluster itself has started again may have ended.
        if !beside(&file, "result").exists() {
            code = code.max(run_job_file(&file, file_types, open_upstream, control)?);
        }
    }
    Ok(code)
}
