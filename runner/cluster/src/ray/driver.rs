//! The driver process: a Python interpreter with Ray, which speaks JSON lines.

use crate::settings::Ray;
use cache::parallel::locked;
use runner_engine::{Failure, no_thread};
use serde::{Deserialize, Serialize};
use serde_json::json;
use stages_core::StageError;
use stages_core::error::Cause;
use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// The driver, which is passed as text: its interpreter needs no package of ours.
const TEXT: &str = include_str!("../../../python/runner/ray.py");

/// The longest wait for the driver's connection to Ray.
const ANSWER: Duration = Duration::from_secs(120);

/// The longest wait for the driver's end.
const END: Duration = Duration::from_secs(20);

/// The number of lines kept of what the driver prints.
const TAIL: usize = 10;

/// A job to submit.
#[derive(Serialize)]
pub(super) struct Submission<'a> {
    pub job: &'a str,
    /// The name that Ray's tools show.
    pub name: String,
    pub cpus: usize,
    pub gpus: u32,
    pub memory: Option<u64>,
    /// The beginnings of the ids of the nodes to avoid.
    pub excluded: Vec<String>,
    /// The time in seconds that the worker has after it was asked to stop.
    pub grace: f64,
}

/// The news of a job from the driver.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Batch {
    id: u64,
    /// Ray's id of the task.
    pub job: Option<String>,
    pub node: Option<String>,
    pub host: Option<String>,
    /// Lines of the worker.
    pub lines: Vec<String>,
    pub warning: Option<String>,
    pub end: Option<TaskEnd>,
}

/// The end of a task.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TaskEnd {
    /// `exit` of the worker, or the reason why there is none.
    pub kind: String,
    /// Ray's own words.
    pub what: String,
    /// The worker's exit status; negative for a signal.
    pub status: i32,
    /// The last lines of the worker's standard error.
    pub tail: Vec<String>,
}

impl TaskEnd {
    pub(super) fn cancelled() -> Self {
        Self {
            kind: "cancelled".to_owned(),
            ..Self::default()
        }
    }
}

/// The first line of the driver.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Hello {
    Ready {},
    /// A message and a hint.
    Problem(String, String),
}

/// The jobs under way. Dropping a sender tells its job that the driver is gone.
#[derive(Default)]
struct Jobs {
    last: u64,
    batches: BTreeMap<u64, Sender<Batch>>,
    is_gone: bool,
}

/// A running driver. It ends with this.
pub(super) struct Driver {
    child: Child,
    stdin: Option<Mutex<ChildStdin>>,
    jobs: Arc<Mutex<Jobs>>,
    tail: Arc<Mutex<VecDeque<String>>>,
}

impl Driver {
    /// Starts the driver, and waits until it is connected.
    ///
    /// # Errors
    /// If the interpreter or Ray is missing, or no cluster answers.
    pub(super) fn start(settings: &Ray, program: &Path, home: &Path) -> Result<Self, Failure> {
        // A name without a slash is found on PATH; a path starts at the home, as in the rest of its file.
        let python = &match settings.python.contains('/') {
            true => home.join(&settings.python).display().to_string(),
            false => settings.python.clone(),
        };
        // This process's own link to its program is another one there.
        let copy = match program.strip_prefix("/proc/self") {
            Ok(name) => Path::new("/proc").join(std::process::id().to_string()).join(name),
            Err(_) => program.to_owned(),
        };
        let mut child = Command::new(python)
            .args(["-c", TEXT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C in a terminal reaches only the engine, which then cancels its jobs.
            .process_group(0)
            .spawn()
            .map_err(|err| {
                Failure::usage(format!("cannot start `{python}`, which drives Ray: {err}"))
                    .hint("`python:` of the executor names an interpreter with Ray (`pip install ray`)")
            })?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(Failure::machine("the driver of Ray has no pipes"));
        };
        let (said, hello) = channel();
        let driver = Self {
            child,
            stdin: Some(Mutex::new(stdin)),
            jobs: Arc::default(),
            tail: Arc::default(),
        };
        let (jobs, tail) = (driver.jobs.clone(), driver.tail.clone());
        let reader = Builder::new().name("ray".to_owned());
        reader.spawn(move || read(stdout, &said, &jobs)).map_err(no_thread)?;
        Builder::new()
            .spawn(move || keep_tail(stderr, &tail))
            .map_err(no_thread)?;
        driver.write(&json!({
            "address": settings.address,
            "program": settings.program,
            "node_dir": settings.node_dir,
            "copy": copy,
        }));
        let line = hello.recv_timeout(ANSWER);
        match line.map(|line| serde_json::from_str(&line)) {
            Ok(Ok(Hello::Ready {})) => Ok(driver),
            Ok(Ok(Hello::Problem(message, hint))) => Err(Failure::usage(message).hint(hint)),
            Ok(Err(_)) => Err(driver.no_answer("gave no answer that can be read")),
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                let seconds = ANSWER.as_secs();
                Err(driver.no_answer(&format!("has no answer of `{}` within {seconds} s", settings.address)))
            }
            Err(_) => Err(driver.no_answer("ended")),
        }
    }

    fn no_answer(&self, what: &str) -> Failure {
        Failure::usage(format!("the driver of Ray {what}{}", self.last_lines())).hint(
            "`ray status` tells whether the cluster is up; the interpreter and the cluster need the same \
             versions of Ray and Python",
        )
    }

    /// The last lines that the driver printed.
    fn last_lines(&self) -> String {
        locked(&self.tail)
            .iter()
            .map(|line| format!("\n    | {line}"))
            .collect()
    }

    fn write(&self, message: &serde_json::Value) {
        if let Some(stdin) = &self.stdin {
            // The reader notices a driver that has ended.
            let _ = locked(stdin).write_all(format!("{message}\n").as_bytes());
        }
    }

    /// Submits a job. Returns its number, and what the driver will tell of it.
    pub(super) fn submit(&self, submission: &Submission<'_>) -> Result<(u64, Receiver<Batch>), StageError> {
        let (sender, batches) = channel();
        let id = {
            let mut jobs = locked(&self.jobs);
            if jobs.is_gone {
                drop(jobs);
                return Err(self.gone());
            }
            jobs.last += 1;
            let id = jobs.last;
            jobs.batches.insert(id, sender);
            id
        };
        let mut message = json!(submission);
        message["id"] = json!(id);
        self.write(&json!({ "submit": message }));
        Ok((id, batches))
    }

    /// Cancels a task: the worker is asked to stop, or killed with `force`.
    pub(super) fn cancel(&self, id: u64, force: bool) {
        self.write(&json!({ "cancel": { "id": id, "force": force } }));
    }

    /// Drops what the driver tells of a job.
    pub(super) fn forget(&self, id: u64) {
        locked(&self.jobs).batches.remove(&id);
    }

    /// The error of a job whose driver has ended.
    pub(super) fn gone(&self) -> StageError {
        StageError {
            message: format!(
                "Ray's head is gone, or the driver that speaks to it was killed{}",
                self.last_lines()
            ),
            hint: Some(
                "results that had arrived are kept: start Ray again, and run the pipeline again".to_owned(),
            ),
            cause: Cause::Store,
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // The end of its input ends the driver, and with it all its tasks.
        self.stdin = None;
        let started = Instant::now();
        while started.elapsed() < END {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the driver's lines until it ends: the first is its answer, the others are of jobs.
fn read(stdout: ChildStdout, hello: &Sender<String>, jobs: &Mutex<Jobs>) {
    let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
    if let Some(line) = lines.next() {
        let _ = hello.send(line);
    }
    for line in lines {
        let Ok(batch) = serde_json::from_str::<Batch>(&line) else {
            continue;
        };
        let mut jobs = locked(jobs);
        let is_last = batch.end.is_some();
        let id = batch.id;
        if let Some(sender) = jobs.batches.get(&id) {
            let _ = sender.send(batch);
        }
        if is_last {
            jobs.batches.remove(&id);
        }
    }
    let mut jobs = locked(jobs);
    jobs.is_gone = true;
    jobs.batches.clear();
}

fn keep_tail(stderr: ChildStderr, tail: &Mutex<VecDeque<String>>) {
    for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
        let mut tail = locked(tail);
        tail.push_back(String::from_utf8_lossy(&line).chars().take(300).collect());
        if tail.len() > TAIL {
            tail.pop_front();
        }
    }
}
