//! One worker process: its start, its messages, and its end.
//!
//! The engine sends a request, a line of JSON, and then commands of its own choosing. A message of the worker
//! is a byte, and what belongs to it: `k` when a command is done, `e` and an error as a line of JSON before
//! it ends, and others as the program agrees with the engine, such as those by which it asks for something.

use super::shared::SharedMemory;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stages_core::event::Silent;
use stages_core::{EventSink, StageError, StageEvent};
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The environment variables of every worker: results do not depend on the user's.
const VARIABLES: [(&str, &str); 5] = [
    ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("LANG", "C.UTF-8"),
    ("TZ", "UTC"),
    ("PYTHONHASHSEED", "0"),
    ("PYTHONNOUSERSITE", "1"),
];
/// The variables by which libraries know how many threads they may use.
const THREADS: [&str; 5] = [
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
];
/// The largest number of bytes of standard error that are kept.
const TAIL: usize = 16 << 10;
/// The number of lines of standard error, or of a traceback, that an error shows.
const LINES: usize = 20;
/// The time within which a worker must end by itself.
const GRACE: Duration = Duration::from_secs(2);
/// The least time that the start of an interpreter may take.
const START: Duration = Duration::from_mins(1);
/// The time after its own limit at which a worker that has not ended is abandoned.
const LATE: Duration = Duration::from_secs(10);

/// The Python that all workers begin with.
const COMMON: &str = include_str!("common.py");

/// Declares modules of the Python package by their names in it.
macro_rules! modules {
    ($($name:literal),*) => {
        &[$(($name, include_str!(concat!("../../../../runner/python/runner/", $name, ".py")))),*]
    };
}

/// The modules of the Python package that workers have, installed or not.
const PACKAGE: &[(&str, &str)] = modules!(
    "__init__",
    "_error",
    "_kind",
    "_stage",
    "gymnasium",
    "stable_baselines3",
    "torch",
    "trained"
);

/// A kind of worker process.
#[derive(Clone, Copy, Debug)]
pub struct Worker {
    /// Its Python, which follows `common.py` and ends with `main(function)`.
    pub program: &'static str,
    /// The user's part in it, for messages, such as `an environment`.
    pub subject: &'static str,
    /// The hint where it took longer than its time limit.
    pub limit_hint: &'static str,
}

/// The interpreter and the surroundings of a worker process.
#[derive(Debug)]
pub struct Launch<'a> {
    /// The interpreter.
    pub interpreter: &'a Path,
    /// The process's home, and the directory of the project's modules.
    pub dir: &'a Path,
    /// The memory that the process maps.
    pub shared: Option<&'a SharedMemory>,
    /// The time within which a command must be carried out. The start has a minute at least.
    pub limit: Duration,
    /// The threads that its libraries may use.
    pub threads: usize,
}

impl Worker {
    /// Starts a process with a request, to which `root`, `package`, `limit` and
    /// `start_limit` are added.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(self, launch: &Launch<'_>, request: Value) -> Result<Process, StageError> {
        self.start_logged(launch, request, Arc::new(Silent))
    }

    /// Starts a process as [`Worker::start`] does, whose output goes to a stage's log as well, line by line.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start_logged(
        self,
        launch: &Launch<'_>,
        mut request: Value,
        log: Arc<dyn EventSink>,
    ) -> Result<Process, StageError> {
        let Launch {
            interpreter,
            dir,
            shared,
            limit,
            threads,
        } = *launch;
        let failed =
            |err: io::Error| StageError::new(format!("cannot start {}: {err}", interpreter.display()));
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        request["root"] = json!(dir);
        request["package"] = PACKAGE.iter().copied().collect();
        request["limit"] = json!(limit.as_secs_f64());
        request["start_limit"] = json!(limit.max(START).as_secs_f64());
        let stdin = match shared {
            Some(shared) => Stdio::from(shared.file().try_clone().map_err(failed)?),
            None => Stdio::null(),
        };
        // In the process group of this program, with which the engine ends it.
        let mut child = Command::new(interpreter)
            .args(["-B", "-s", "-c", &format!("{COMMON}\n\n{}", self.program)])
            .env_clear()
            .envs(VARIABLES)
            .envs(THREADS.map(|name| (name, threads.to_string())))
            .env("HOME", dir)
            .env("TMPDIR", dir)
            .current_dir(dir)
            .stdin(stdin)
            .stdout(Stdio::from(OwnedFd::from(theirs)))
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let stderr = child.stderr.take();
        let errors =
            stderr.and_then(|stderr| std::thread::Builder::new().spawn(move || tail(stderr, &*log)).ok());
        let mut process = Process {
            worker: self,
            child,
            socket: BufReader::new(ours),
            errors,
            limit,
        };
        process.send(format!("{request}\n").as_bytes())?;
        Ok(process)
    }
}

/// A worker process, which is killed when this is dropped.
#[derive(Debug)]
pub struct Process {
    worker: Worker,
    child: Child,
    socket: BufReader<UnixStream>,
    errors: Option<JoinHandle<String>>,
    limit: Duration,
}

/// The error that a worker reports.
#[derive(Deserialize)]
struct Reported {
    message: String,
    hint: Option<String>,
    trace: String,
}

impl Process {
    /// Sends bytes: a command, or an answer.
    ///
    /// # Errors
    /// When the worker has ended.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), StageError> {
        match self.socket.get_mut().write_all(bytes) {
            Ok(()) => Ok(()),
            Err(_) => Err(self.failure()),
        }
    }

    /// Waits until the worker is done with a command.
    ///
    /// # Errors
    /// When it fails, ends, or takes longer than its limit.
    pub fn done(&mut self) -> Result<(), StageError> {
        self.expect_done(Some(self.limit))
    }

    /// Waits until the worker is done with any number of steps, each of which has its limit.
    pub(super) fn done_with_all(&mut self) -> Result<(), StageError> {
        self.expect_done(None)
    }

    fn expect_done(&mut self, limit: Option<Duration>) -> Result<(), StageError> {
        match self.next(limit.map(|limit| limit + LATE))? {
            Some(b'k') => Ok(()),
            Some(_) => Err(self.failure()),
            None => Err(self.too_long()),
        }
    }

    /// Waits for the byte that begins a message: `k` where a command is done, any other where the worker asks
    /// for something; `None` after `wait`. What follows it is read by [`Process::line`] or
    /// [`Process::bytes`].
    ///
    /// # Errors
    /// When the worker fails, or ends.
    pub fn next(&mut self, wait: Option<Duration>) -> Result<Option<u8>, StageError> {
        let mut tag = [0];
        let read = self.socket.get_ref().set_read_timeout(wait);
        match read.and_then(|()| self.socket.read_exact(&mut tag)) {
            Ok(()) if tag == *b"e" => Err(self.reported()),
            Ok(()) => Ok(Some(tag[0])),
            Err(err) if matches!(err.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(None),
            Err(_) => Err(self.failure()),
        }
    }

    /// Waits for the answer to the request that started the process.
    ///
    /// # Errors
    /// When it fails, ends, takes too long, or answers something else.
    pub fn answer<T: DeserializeOwned>(&mut self) -> Result<T, StageError> {
        self.started()?;
        self.line()
    }

    /// Waits until the worker is done with a part of its start, which has a minute at least.
    ///
    /// # Errors
    /// When it fails, ends, or takes too long.
    pub fn started(&mut self) -> Result<(), StageError> {
        let limit = self.limit;
        self.limit = self.limit.max(START);
        self.done()?;
        self.limit = limit;
        Ok(())
    }

    /// Reads the line of JSON of a message.
    ///
    /// # Errors
    /// When the worker ends, or sends something else.
    pub fn line<T: DeserializeOwned>(&mut self) -> Result<T, StageError> {
        let mut line = Vec::new();
        let read = (&mut self.socket).take(LONGEST_LINE).read_until(b'\n', &mut line);
        if read.is_err() || line.is_empty() {
            return Err(self.failure());
        }
        serde_json::from_slice(&line)
            .map_err(|err| StageError::new(format!("cannot read the answer of a worker process: {err}")))
    }

    /// Reads the bytes of a message whose length is known.
    ///
    /// # Errors
    /// When the worker ends before.
    pub fn bytes(&mut self, bytes: &mut [u8]) -> Result<(), StageError> {
        match self.socket.read_exact(bytes) {
            Ok(()) => Ok(()),
            Err(_) => Err(self.failure()),
        }
    }

    /// The error that the worker describes before it ends.
    fn reported(&mut self) -> StageError {
        let mut line = Vec::new();
        let read = (&mut self.socket).take(LONGEST_LINE).read_until(b'\n', &mut line);
        match read.map(|_| serde_json::from_slice::<Reported>(&line)) {
            Ok(Ok(Reported { message, hint, trace })) => {
                let shown = match trace.is_empty() && hint.is_none() {
                    // What it printed may say more.
                    true => self.end().1,
                    false => trace,
                };
                let mut error = StageError::new(message);
                error.hint = hint;
                push_lines(&mut error.message, &shown);
                error
            }
            _ => self.failure(),
        }
    }

    /// The error of a worker that took longer than its limit.
    pub fn too_long(&self) -> StageError {
        StageError::new(format!(
            "{} took longer than its time limit of {} s",
            self.worker.subject,
            self.limit.as_secs_f64()
        ))
        .hint(self.worker.limit_hint)
    }

    /// The error for a worker that ended without reporting one.
    fn failure(&mut self) -> StageError {
        let (status, printed) = self.end();
        let mut error = match status.map(|status| (status.signal(), status.code())) {
            Some((Some(SIGALRM), _)) => self.too_long(),
            Some((Some(signal), _)) => {
                StageError::new(format!("a worker process was killed by {}", name(signal))).hint(format!(
                    "{}, or a library that it uses, crashed; or the machine ran out of memory",
                    self.worker.subject
                ))
            }
            Some((None, Some(code))) => {
                StageError::new(format!("{} ended its process, with status {code}", self.worker.subject))
                    .hint("raise an exception where something is wrong: no `sys.exit`")
            }
            _ => StageError::new("a worker process does not answer"),
        };
        push_lines(&mut error.message, &printed);
        error
    }

    /// Ends the process, if it does not end by itself; returns its status and the last that it printed.
    fn end(&mut self) -> (Option<ExitStatus>, String) {
        let _ = self.socket.get_ref().shutdown(std::net::Shutdown::Both);
        let since = Instant::now();
        let mut status = self.child.try_wait().ok().flatten();
        while status.is_none() && since.elapsed() < GRACE {
            std::thread::sleep(Duration::from_millis(2));
            status = self.child.try_wait().ok().flatten();
        }
        if status.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        // A child of the environment's own may still hold standard error: it is not waited for.
        let printed = match self.errors.take() {
            Some(errors) if finished(&errors) => errors.join().unwrap_or_default(),
            _ => String::new(),
        };
        (status, printed)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns whether the thread has ended, after waiting briefly.
fn finished(thread: &JoinHandle<String>) -> bool {
    let since = Instant::now();
    while !thread.is_finished() && since.elapsed() < GRACE {
        std::thread::sleep(Duration::from_millis(2));
    }
    thread.is_finished()
}

/// The last bytes of standard error, whose lines go to the log.
fn tail(stderr: ChildStderr, log: &dyn EventSink) -> String {
    let mut stderr = BufReader::new(stderr);
    let (mut kept, mut line) = (Vec::new(), Vec::new());
    while let Ok(count) = (&mut stderr).take(TAIL as u64).read_until(b'\n', &mut line)
        && count > 0
    {
        let text = String::from_utf8_lossy(&line);
        log.emit(StageEvent::Log {
            line: text.trim_end_matches(['\r', '\n']).to_owned(),
        });
        kept.append(&mut line);
        kept.drain(..kept.len().saturating_sub(TAIL));
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// Appends the last lines of a text to a message, without the frames of the worker's own program.
fn push_lines(message: &mut String, text: &str) {
    let is_shown =
        |line: &&str| !(line.trim().is_empty() || line.trim_start().starts_with("File \"<string>\""));
    let lines: Vec<&str> = text.lines().filter(is_shown).collect();
    for line in &lines[lines.len().saturating_sub(LINES)..] {
        message.push_str("\n    | ");
        message.push_str(line);
    }
}

/// The signal of a worker's own time limit.
const SIGALRM: i32 = 14;

/// The longest line of a message, in bytes.
const LONGEST_LINE: u64 = 64 << 20;

/// The name of a signal.
fn name(signal: i32) -> String {
    match signal {
        4 => "SIGILL".to_owned(),
        6 => "SIGABRT".to_owned(),
        7 => "SIGBUS".to_owned(),
        8 => "SIGFPE".to_owned(),
        9 => "SIGKILL".to_owned(),
        11 => "SIGSEGV".to_owned(),
        15 => "SIGTERM".to_owned(),
        other => format!("signal {other}"),
    }
}
