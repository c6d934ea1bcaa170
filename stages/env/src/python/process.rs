//! One worker process: its start, its answers, and its end.

use super::WORKER;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stages_core::StageError;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The environment variables of every worker: results do not depend on the user's, and a worker is one thread
/// of its engine.
const VARIABLES: [(&str, &str); 10] = [
    ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("LANG", "C.UTF-8"),
    ("TZ", "UTC"),
    ("PYTHONHASHSEED", "0"),
    ("PYTHONNOUSERSITE", "1"),
    ("OMP_NUM_THREADS", "1"),
    ("OPENBLAS_NUM_THREADS", "1"),
    ("MKL_NUM_THREADS", "1"),
    ("VECLIB_MAXIMUM_THREADS", "1"),
    ("NUMEXPR_NUM_THREADS", "1"),
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

/// A worker process, which is killed when this is dropped.
pub(super) struct Process {
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
    /// Starts a worker in `dir`, its home and the place of its modules, with a request; `shared` has the
    /// arrays of a batch, `limit` is that of a step.
    pub(super) fn start(
        program: &Path,
        dir: &Path,
        shared: Option<&File>,
        limit: Duration,
        mut request: Value,
    ) -> Result<Self, StageError> {
        let failed = |err: io::Error| StageError::new(format!("cannot start {}: {err}", program.display()));
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        request["root"] = json!(dir);
        request["limit"] = json!(limit.as_secs_f64());
        request["start_limit"] = json!(limit.max(START).as_secs_f64());
        let stdin = match shared {
            Some(file) => Stdio::from(file.try_clone().map_err(failed)?),
            None => Stdio::null(),
        };
        // In the process group of this program, with which the engine ends it.
        let mut child = Command::new(program)
            .args(["-B", "-s", "-c", WORKER])
            .env_clear()
            .envs(VARIABLES)
            .env("HOME", dir)
            .env("TMPDIR", dir)
            .current_dir(dir)
            .stdin(stdin)
            .stdout(Stdio::from(OwnedFd::from(theirs)))
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let stderr = child.stderr.take();
        let errors = stderr.and_then(|stderr| std::thread::Builder::new().spawn(move || tail(stderr)).ok());
        let mut this = Self {
            child,
            socket: BufReader::new(ours),
            errors,
            limit,
        };
        this.send(format!("{request}\n").as_bytes())?;
        Ok(this)
    }

    /// Sends a command.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), StageError> {
        match self.socket.get_mut().write_all(bytes) {
            Ok(()) => Ok(()),
            Err(_) => Err(self.failure()),
        }
    }

    /// Waits until the worker is done with a step or the beginning of episodes.
    pub(super) fn done(&mut self) -> Result<(), StageError> {
        self.wait(Some(self.limit))
    }

    /// Waits until the worker is done with any number of steps, each of which has its limit.
    pub(super) fn done_with_all(&mut self) -> Result<(), StageError> {
        self.wait(None)
    }

    fn wait(&mut self, limit: Option<Duration>) -> Result<(), StageError> {
        let mut answer = [0];
        let read = self.socket.get_ref().set_read_timeout(limit.map(|limit| limit + LATE));
        match read.and_then(|()| self.socket.read_exact(&mut answer)) {
            Ok(()) if answer == *b"k" => Ok(()),
            Ok(()) => Err(self.reported()),
            Err(err) if matches!(err.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(self.too_long())
            }
            Err(_) => Err(self.failure()),
        }
    }

    /// Waits for the answer to the request.
    pub(super) fn answer<T: DeserializeOwned>(&mut self) -> Result<T, StageError> {
        let limit = self.limit;
        self.limit = self.limit.max(START);
        self.wait(Some(self.limit))?;
        self.limit = limit;
        let mut line = Vec::new();
        if self.socket.read_until(b'\n', &mut line).is_err() {
            return Err(self.failure());
        }
        serde_json::from_slice(&line)
            .map_err(|err| StageError::new(format!("cannot read the answer of a worker process: {err}")))
    }

    /// The error that the worker describes before it ends.
    fn reported(&mut self) -> StageError {
        let mut line = Vec::new();
        let read = self.socket.read_until(b'\n', &mut line);
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

    fn too_long(&self) -> StageError {
        StageError::new(format!(
            "an environment took longer than its time limit of {} s",
            self.limit.as_secs_f64()
        ))
        .hint("`time_limit:` of its stage is the limit of a step, and of the start")
    }

    /// The error for a worker that ended without reporting one.
    fn failure(&mut self) -> StageError {
        let (status, printed) = self.end();
        let mut error = match status.map(|status| (status.signal(), status.code())) {
            Some((Some(SIGALRM), _)) => self.too_long(),
            Some((Some(signal), _)) => {
                StageError::new(format!("a worker process was killed by {}", name(signal))).hint(
                    "the environment, or a library that it uses, crashed; or the machine ran out of memory",
                )
            }
            Some((None, Some(code))) => {
                StageError::new(format!("an environment ended its process, with status {code}"))
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

/// The last bytes of standard error.
fn tail(mut stderr: ChildStderr) -> String {
    let mut kept = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(count) = stderr.read(&mut piece)
        && count > 0
    {
        kept.extend_from_slice(&piece[..count]);
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
