//! `run:` stages: an external program in an empty directory, with a clean environment.
//!
//! ```text
//! TMP/run-XXXXXX/
//! ├── work/        its working directory: empty but for its `files:`
//! └── needs/X/     the content of its input X, or `seed=1/` and so on below it if it is collected: see `links`
//! ```

use super::child_wait::ChildWait;
use super::files::{create_parent, failed};
use super::input_links::InputLinks;
use super::job::Done;
use super::limits::{Limits, timed_out};
use super::memory::{USAGE, tree_cpu, tree_memory};
use super::outputs::take_in;
use super::secrets::{Filter, Masker};
use crate::text;
use cache::{BlobRef, Store, WorkerReport, Workspace};
use runner_pipeline::{command_text, is_plain_path, plain_path};
use rustix::process::{Pid, Signal, kill_process_group};
use stages_core::error::Cause;
use stages_core::{EventSink, Input, Source, StageError, StageEvent};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time that a program has to exit after it was asked to.
const GRACE: Duration = Duration::from_secs(5);

/// The number of last lines of a failed program's output that are shown.
const LAST_LINES: usize = 10;

/// A callback that receives a process group's id, and whether the group starts or is gone.
type Announce = dyn Fn(i32, bool) + Send + Sync;

#[derive(Default)]
struct GroupState {
    pid: Option<Pid>,
    ended: bool,
}

/// The process group of a running program, shared with every thread that may have to kill it.
#[derive(Clone, Default)]
pub(crate) struct Group {
    state: Arc<Mutex<GroupState>>,
    announce: Option<Arc<Announce>>,
}

impl Group {
    /// `announce` is called with the group's id when a program starts, and when the group is gone.
    pub fn new(announce: impl Fn(i32, bool) + Send + Sync + 'static) -> Self {
        Self {
            state: Arc::default(),
            announce: Some(Arc::new(announce)),
        }
    }

    /// Kills the program, and any program that would start later.
    pub fn end(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.ended = true;
        if let Some(pid) = state.pid {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }

    /// Starts a program. No call of `end` can fall between its start and its registration.
    fn start(&self, command: &mut Command) -> io::Result<std::process::Child> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.ended {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let child = command.spawn()?;
        state.pid = Pid::from_raw(child.id().cast_signed());
        if let Some(announce) = &self.announce {
            announce(child.id().cast_signed(), true);
        }
        Ok(child)
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.state.lock().unwrap_or_else(PoisonError::into_inner).pid {
            let _ = kill_process_group(pid, signal);
        }
    }

    /// Kills remaining processes of the group, and clears the registration.
    fn clear(&self) {
        self.signal(Signal::KILL);
        let pid = self.state.lock().unwrap_or_else(PoisonError::into_inner).pid.take();
        if let (Some(pid), Some(announce)) = (pid, &self.announce) {
            announce(pid.as_raw_nonzero().get(), false);
        }
    }
}

/// An external program to run.
pub(crate) struct Run<'a> {
    pub command: &'a str,
    pub outputs: &'a BTreeMap<String, String>,
    /// The directories of collected inputs.
    pub points: &'a BTreeMap<String, Vec<String>>,
    pub env: &'a BTreeMap<String, String>,
    /// The variables of `env` whose values are masked in the log.
    pub secrets: &'a [String],
    pub inputs: &'a BTreeMap<String, Vec<Input>>,
    pub files: &'a [Source],
    pub log: &'a Path,
}

impl Run<'_> {
    /// Runs the program and stores its outputs.
    pub fn execute(
        &self,
        store: &Store,
        events: &dyn EventSink,
        limits: &Limits,
        group: &Group,
    ) -> Result<Done, StageError> {
        // Paths are inserted into the command without quoting.
        let dir = if store.root().to_str().is_some_and(is_plain_path) {
            store.workspace()?
        } else {
            let tmp = std::env::temp_dir();
            Workspace::new(&fs::canonicalize(&tmp).map_err(failed("read", &tmp))?)?
        };
        let work = dir.path().join("work");
        fs::create_dir(&work).map_err(failed("create", &work))?;
        for source in self.files {
            let to = work.join(&source.name);
            create_parent(&to)?;
            fs::copy(&source.path, &to)
                .map_err(|err| StageError::new(format!("cannot read `{}`: {err}", source.path.display())))?;
            // The program reads this copy, so its digest has to match the key.
            source.check(BlobRef::of_file(&to)?.blob)?;
        }
        fetch(self.inputs, store, events)?;
        let mut needs = BTreeMap::new();
        let mut links = InputLinks::default();
        for (port, inputs) in self.inputs {
            let base = dir.path().join("needs").join(port);
            let mut paths = Vec::new();
            for (i, input) in inputs.iter().enumerate() {
                let base = match self.points.get(port).and_then(|names| names.get(i)) {
                    Some(name) if is_plain_path(name) => base.join(name),
                    Some(name) => base.join(format!("{}_{i}", plain_path(name))),
                    None if inputs.len() == 1 => base.clone(),
                    None => base.join(i.to_string()),
                };
                paths.push(links.write_out(store, &input.artifact, &base)?.display().to_string());
            }
            needs.insert(port.as_str(), paths.join(" "));
        }
        for name in self.outputs.values().filter(|name| name.contains('/')) {
            create_parent(&work.join(name))?;
        }
        let text = command_text(self.command, |space, name| match space {
            "needs" => needs.get(name).cloned(),
            _ => self.outputs.get(name).map(|file| work.join(file).display().to_string()),
        });
        let (status, peak_memory, over_time) = self.wait(&text, &work, events, limits, group)?;
        links.check(store)?;
        if let Some(limit) = over_time {
            return Err(timed_out(limit));
        }
        if (limits.cancel.is_cancelled() || limits.kill.is_cancelled()) && !status.success() {
            return Err(StageError::interrupted());
        }
        if !status.success() {
            let what = format!("the command {}", describe(status));
            return Err(self.with_log(full(&work, &what).unwrap_or_else(|| StageError::new(what))));
        }
        let mut outputs = BTreeMap::new();
        let inside = fs::canonicalize(dir.path()).map_err(failed("read", dir.path()))?;
        for (name, file) in self.outputs {
            let path = work.join(file);
            if !path.exists() {
                return Err(self.with_log(
                    StageError::new(format!(
                        "the command succeeded, but its output `{name}` (`{file}`) is missing"
                    ))
                    .hint(format!("the command must write it at ${{outputs.{name}}}")),
                ));
            }
            outputs.insert(name.clone(), take_in(store, name, &path, &inside)?);
        }
        let log = fs::read(self.log).unwrap_or_default();
        let log = if log.is_empty() { None } else { Some(store.put(&log)?) };
        let _ = fs::remove_file(self.log);
        Ok(Done {
            outputs,
            log,
            peak_memory,
            numerics_class: None,
            upstream: WorkerReport::default(),
        })
    }

    /// Starts the program and waits for it to exit.
    fn wait(
        &self,
        text: &str,
        work: &Path,
        events: &dyn EventSink,
        limits: &Limits,
        group: &Group,
    ) -> Result<(ExitStatus, Option<u64>, Option<Duration>), StageError> {
        let file = new_log(self.log).map_err(failed("write", self.log))?;
        let hidden = self.secrets.iter().filter_map(|name| self.env.get(name));
        let (out, err, filter): (Stdio, Stdio, _) = match Masker::new(hidden.map(String::as_str)) {
            Some(masker) => {
                let (from, to) = io::pipe().map_err(|err| StageError::new(format!("cannot create a pipe: {err}")))?;
                let second = to.try_clone().map_err(failed("write", self.log))?;
                (to.into(), second.into(), Some(Filter::start(masker, from, file)))
            }
            None => {
                let second = file.try_clone().map_err(failed("write", self.log))?;
                (file.into(), second.into(), None)
            }
        };
        let mut command = Command::new(shell(self.env.get("PATH").map_or("/bin:/usr/bin", String::as_str)));
        command
            .arg0("sh")
            .arg("-c")
            .arg(text)
            .current_dir(work)
            .env_clear()
            .envs(self.env)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .process_group(0);
        let mut child = match group.start(&mut command) {
            Ok(child) => child,
            Err(err) if err.kind() == io::ErrorKind::Interrupted => return Err(StageError::interrupted()),
            Err(err) => return Err(StageError::new(format!("cannot start `sh`: {err}"))),
        };
        // The command holds the write ends of the pipe, if there is one.
        drop(command);
        let pid = child.id();
        let ended = Pid::from_raw(pid.cast_signed()).map(ChildWait::of);
        let mut tail = Tail::new(self.log);
        let mut peak = 0;
        let started = Instant::now();
        let mut said = started;
        let mut asked: Option<Instant> = None;
        let mut over_time = None;
        let mut pause = Duration::from_millis(10);
        while ended.as_ref().is_some_and(|ended| !ended.within(pause)) {
            pause = (pause * 2).min(Duration::from_millis(200));
            let memory = tree_memory(pid);
            peak = peak.max(memory);
            if said.elapsed() >= USAGE {
                said = Instant::now();
                let cpu_seconds = tree_cpu(pid);
                events.emit(StageEvent::Usage { cpu_seconds, memory });
            }
            if let Some(line) = tail.last_line() {
                events.emit(StageEvent::Progress {
                    done: 0,
                    total: None,
                    message: line,
                });
            }
            if asked.is_none() {
                over_time = limits.timeout.filter(|limit| started.elapsed() > *limit);
            }
            match asked {
                _ if limits.kill.is_cancelled() => group.signal(Signal::KILL),
                None if over_time.is_some() || limits.cancel.is_cancelled() => {
                    group.signal(Signal::TERM);
                    asked = Some(Instant::now());
                    pause = Duration::from_millis(10);
                }
                Some(since) if since.elapsed() > GRACE.min(limits.grace) => group.signal(Signal::KILL),
                _ => {}
            }
        }
        let status = child
            .wait()
            .map_err(|err| StageError::new(format!("cannot wait for the command: {err}")))?;
        group.clear();
        if let Some(filter) = filter {
            filter.finish();
        }
        Ok((
            status,
            (peak > 0).then_some(peak),
            over_time.filter(|_| !status.success()),
        ))
    }

    /// Adds the last lines of the program's output to an error.
    fn with_log(&self, mut error: StageError) -> StageError {
        let text = fs::read(self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        if lines.is_empty() {
            let _ = fs::remove_file(self.log);
            return error;
        }
        let from = lines.len().saturating_sub(LAST_LINES);
        for line in &lines[from..] {
            error.message.push_str("\n    | ");
            error.message.push_str(line);
        }
        let whole = format!("its whole output is in {}", self.log.display());
        error.hint = Some(match error.hint.take() {
            Some(hint) => format!("{hint}; {whole}"),
            None => whole,
        });
        error
    }
}

/// Fetches blobs that are not in the local store from the remote store.
fn fetch(inputs: &BTreeMap<String, Vec<Input>>, store: &Store, events: &dyn EventSink) -> Result<(), StageError> {
    let entries = inputs.values().flatten().flat_map(|input| &input.artifact.entries);
    let absent: Vec<_> = entries
        .map(cache::Entry::blob_ref)
        .filter(|blob| !store.has_here(*blob))
        .collect();
    if !absent.is_empty() {
        let bytes = absent.iter().fold(0_u64, |sum, blob| sum.saturating_add(blob.size));
        events.emit(StageEvent::Progress {
            done: 0,
            total: None,
            message: format!("fetching {} from the remote store", text::size(bytes)),
        });
        store.fetch_all(absent)?;
    }
    Ok(())
}

/// The error of a program that failed because the disk is full; `None` if there is space.
fn full(dir: &Path, what: &str) -> Option<StageError> {
    /// The size of a write that may fail on a full disk.
    const ROOM: u64 = 64 << 10;
    let disk = rustix::fs::statvfs(dir).ok()?;
    // Some file systems do not report a number of files.
    let no_files = disk.f_files > 0 && disk.f_favail == 0;
    let no_bytes = disk.f_bavail.saturating_mul(disk.f_frsize) < ROOM;
    (no_bytes || no_files).then(|| StageError {
        cause: Cause::Store,
        ..StageError::new(format!("{what}, and the disk of `{}` is full", dir.display()))
            .hint("free disk space, or set `RUNNER_HOME` to a directory on another disk")
    })
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with status {code}"),
        (None, Some(signal)) => format!("was killed by {}", signal_name(signal)),
        (None, None) => "ended without a status".to_owned(),
    }
}

/// A signal's number and name.
pub(crate) fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        _ => return format!("signal {signal}"),
    };
    format!("signal {signal} ({name})")
}

/// The absolute path of the shell: a program with an absolute path is started without forking this process.
fn shell(path: &str) -> PathBuf {
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join("sh"))
        .find(|shell| fs::metadata(shell).is_ok_and(|meta| meta.is_file() && meta.mode() & 0o111 != 0))
        .unwrap_or_else(|| "sh".into())
}

/// Creates an empty log file in append mode, so that the lines of both streams are in the order in which they were written.
fn new_log(path: &Path) -> io::Result<File> {
    let open = || File::options().append(true).create(true).open(path);
    let file = match (open(), path.parent()) {
        (Err(err), Some(parent)) if err.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(parent)?;
            open()?
        }
        (opened, _) => opened?,
    };
    file.set_len(0)?;
    Ok(file)
}

/// Reads the last line of a growing file.
struct Tail<'p> {
    path: &'p Path,
    /// Opened on the first read.
    file: Option<File>,
    at: u64,
}

impl<'p> Tail<'p> {
    fn new(path: &'p Path) -> Self {
        Self {
            path,
            file: None,
            at: 0,
        }
    }

    /// The last complete line written since the last call.
    fn last_line(&mut self) -> Option<String> {
        const WINDOW: u64 = 4096;
        if self.file.is_none() {
            self.file = File::open(self.path).ok();
        }
        let file = self.file.as_mut()?;
        let end = file.metadata().ok()?.len();
        if end <= self.at {
            return None;
        }
        let from = self.at.max(end.saturating_sub(WINDOW));
        file.seek(SeekFrom::Start(from)).ok()?;
        let mut bytes = Vec::new();
        file.take(end - from).read_to_end(&mut bytes).ok()?;
        let complete = bytes.iter().rposition(|&byte| byte == b'\n')?;
        self.at = from + complete as u64 + 1;
        let text = String::from_utf8_lossy(&bytes[..complete]);
        let line = text.rsplit(['\n', '\r']).find(|line| !line.trim().is_empty())?.trim();
        Some(line.chars().filter(|c| !c.is_control()).take(200).collect())
    }
}
