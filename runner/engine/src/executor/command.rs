//! `run:` stages: an external program in an empty directory, with a clean environment, isolated from the host where that is possible.

use super::container::{self, Container, Watchdog};
use super::files::{create_parent, failed};
use super::input_files::InputFiles;
use super::invisible::{self, Host};
use super::job::Done;
use super::limits::{Limits, timed_out};
use super::log::{self, LogWriter};
use super::outputs::take_in;
use super::sandbox::{Isolated, Sandbox, Spec};
use super::secrets::Masker;
use super::stage_dir::StageDir;
use super::tools::check_versions;
use super::undeclared::{undeclared, warning};
use super::watch::{Ended, watch};
use crate::text;
use cache::{BlobRef, Store, WorkerReport};
use runner_pipeline::{Isolation, Shell, Tool, command_text, is_plain_path, plain_path};
use stages_core::error::Cause;
use stages_core::{EventSink, Input, Source, StageError, StageEvent};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Instant;

/// The number of last lines of a failed program's output that are shown, and the bytes in which they are looked for.
const LAST_LINES: usize = 10;
const LAST_BYTES: u64 = 16 << 10;

/// The longest line that is shown, in characters.
const LONGEST_LINE: usize = 1000;

/// The directories of the system's programs.
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// An external program to run.
pub(crate) struct Run<'a> {
    pub command: &'a str,
    pub outputs: &'a BTreeMap<String, String>,
    /// The directories of collected inputs.
    pub points: &'a BTreeMap<String, Vec<String>>,
    pub env: &'a BTreeMap<String, String>,
    /// The variables of `env` whose values are masked in the log.
    pub secrets: &'a [String],
    pub shell: Shell,
    pub isolation: Isolation,
    pub network: bool,
    pub tools: &'a [Tool],
    pub log_limit: u64,
    pub inputs: &'a BTreeMap<String, Vec<Input>>,
    pub files: &'a [Source],
    pub log: &'a Path,
    /// The image that it runs in, and the limit of its memory.
    pub container: Option<&'a str>,
    pub memory: Option<u64>,
    /// The engine's own variables that find programs, and the directory of the pipeline.
    pub host_env: &'a BTreeMap<String, String>,
    pub base: &'a Path,
}

impl Run<'_> {
    /// Runs the program and stores its outputs.
    pub fn execute(
        &self,
        sandbox: &Sandbox,
        store: &Store,
        events: &dyn EventSink,
        limits: &Limits,
    ) -> Result<Done, StageError> {
        let started = Instant::now();
        let isolated = match self.container {
            Some(_) => Isolated::Container,
            None => sandbox.isolation(self.isolation, store)?,
        };
        events.emit(StageEvent::Isolation {
            isolation: isolated.name().to_owned(),
            network: self.network || isolated == Isolated::None,
        });
        if isolated == Isolated::None
            && self.isolation != Isolation::None
            && let Some(reason) = sandbox.refusal()
        {
            events.emit(StageEvent::Warning {
                message: format!("runs without isolation: {reason}"),
                hint: Some("`isolation: none` in `config.yaml` accepts that".to_owned()),
            });
        }
        let dir = StageDir::new(store, isolated)?;
        let work = dir.host("work");
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
        let mut inputs = InputFiles::new(isolated != Isolated::None);
        for (port, artifacts) in self.inputs {
            let base = dir.host("needs").join(port);
            let mut paths = Vec::new();
            for (i, input) in artifacts.iter().enumerate() {
                let base = match self.points.get(port).and_then(|names| names.get(i)) {
                    Some(name) if is_plain_path(name) => base.join(name),
                    Some(name) => base.join(format!("{}_{i}", plain_path(name))),
                    None if artifacts.len() == 1 => base.clone(),
                    None => base.join(i.to_string()),
                };
                let path = inputs.write_out(store, &input.artifact, &base)?;
                paths.push(dir.seen(&path).display().to_string());
            }
            needs.insert(port.as_str(), paths.join(" "));
        }
        for name in self.outputs.values().filter(|name| name.contains('/')) {
            create_parent(&work.join(name))?;
        }
        let seen = dir.seen(&work);
        let text = command_text(self.command, |space, name| match space {
            "needs" => needs.get(name).cloned(),
            _ => self.outputs.get(name).map(|file| seen.join(file).display().to_string()),
        });
        let run = Running {
            sandbox,
            store,
            dir: &dir,
            isolated,
            started,
            events,
            limits,
        };
        let ended = match self.container {
            Some(image) => self.run_in_container(&run, image, &text)?,
            None => self.run_in_sandbox(&run, text)?,
        };
        if !limits.is_cancelled() {
            inputs.check(store)?;
        }
        let status = ended.status;
        if let Some(limit) = ended.over_time.filter(|_| !status.success()) {
            return Err(timed_out(limit));
        }
        if limits.is_cancelled() && !status.success() {
            return Err(StageError::interrupted());
        }
        if let Some((message, hint)) = ended
            .executed
            .as_ref()
            .and_then(|all| warning(&undeclared(all, self.tools)))
        {
            events.emit(StageEvent::Warning {
                message,
                hint: Some(hint),
            });
        }
        if !status.success() {
            let of_container = |code| container::reason(code, self.shell).filter(|_| self.container.is_some());
            let what = format!("the command {}", describe(status));
            let error = match status.code().and_then(of_container) {
                Some((reason, hint)) => StageError::new(format!("{what}: {reason}")).hint(hint),
                None => full(&work, &what).unwrap_or_else(|| StageError::new(what)),
            };
            return Err(self.with_log(error, isolated));
        }
        let stop = || limits.stopped(started);
        let mut outputs = BTreeMap::new();
        for (name, file) in self.outputs {
            let path = work.join(file);
            if fs::symlink_metadata(&path).is_err() {
                return Err(self.with_log(
                    StageError::new(format!(
                        "the command succeeded, but its output `{name}` (`{file}`) is missing"
                    ))
                    .hint(format!("the command must write it at ${{outputs.{name}}}")),
                    isolated,
                ));
            }
            outputs.insert(name.clone(), take_in(store, name, &path, &dir, &stop)?);
        }
        let log = self.store_log(store, &stop)?;
        Ok(Done {
            outputs,
            log,
            peak_memory: ended.peak_memory,
            numerics_class: None,
            isolation: Some(isolated.name().to_owned()),
            executed: ended.executed.map(|all| all.into_iter().collect()),
            upstream: WorkerReport::default(),
        })
    }

    /// The path of the shell.
    fn shell_path(&self) -> Result<PathBuf, StageError> {
        let name = self.shell.name();
        let tool = self
            .tools
            .iter()
            .find(|tool| !tool.is_environment() && tool.link() == name);
        let system = || {
            std::env::split_paths(SYSTEM_PATH)
                .map(|dir| dir.join(name))
                .find(|path| is_program(path))
        };
        tool.map(|tool| tool.path.clone()).or_else(system).ok_or_else(|| {
            let error = StageError::new(format!("`{name}` is not installed"));
            match self.shell {
                Shell::Bash => error.hint("install it, or write `shell: sh`"),
                Shell::Sh => error,
            }
        })
    }

    /// The files that the program sees besides the system's own.
    fn visible(&self) -> Vec<PathBuf> {
        let own = self.tools.iter().flat_map(|tool| [&tool.path, &tool.bin]);
        let more = self.tools.iter().flat_map(|tool| &tool.visible);
        own.chain(more).cloned().collect()
    }

    /// Links the tools that are single executables into the stage's directory. Returns the PATH.
    fn link_tools(&self, dir: &StageDir) -> Result<String, StageError> {
        let links = dir.host("tools");
        let mut path = Vec::new();
        for tool in self.tools.iter().filter(|tool| !tool.is_environment()) {
            let link = links.join(tool.link());
            symlink(&tool.bin, &link).map_err(failed("link", &link))?;
            path = vec![dir.seen(&links).display().to_string()];
        }
        let environments = self.tools.iter().filter(|tool| tool.is_environment());
        path.extend(environments.map(|tool| tool.bin.display().to_string()));
        path.push(SYSTEM_PATH.to_owned());
        Ok(path.join(":"))
    }

    /// The complete environment of the program.
    fn environment(&self, dir: &StageDir, path: &str) -> BTreeMap<String, String> {
        let tmp = match dir.seen(&dir.stage()) == dir.stage() {
            true => dir.host("tmp").display().to_string(),
            false => "/tmp".to_owned(),
        };
        let base = [
            ("PATH", path.to_owned()),
            ("HOME", dir.seen(&dir.host("home")).display().to_string()),
            ("LANG", "C.UTF-8".to_owned()),
            ("TZ", "UTC".to_owned()),
            ("TMPDIR", tmp),
        ];
        let mut env: BTreeMap<String, String> = base.map(|(name, value)| (name.to_owned(), value)).into();
        env.extend(self.env.clone());
        env
    }

    /// Runs the text in the sandbox.
    fn run_in_sandbox(&self, run: &Running<'_>, text: String) -> Result<Ended, StageError> {
        let path = self.link_tools(run.dir)?;
        let shell = self.shell_path()?;
        let spec = |program: &Path, arguments: Vec<String>| Spec {
            isolate: run.isolated == Isolated::Namespaces,
            network: self.network,
            stage: run.dir.stage(),
            root: run.dir.root(),
            visible: self.visible(),
            program: program.to_owned(),
            arguments,
            env: self.environment(run.dir, &path),
            directory: run.dir.seen(&run.dir.host("work")),
        };
        check_versions(self.tools, |program, name| {
            run.first_line(&spec(program, vec![name.to_owned(), "--version".to_owned()]))
        })?;
        let arguments = std::iter::once(self.shell.name()).chain(self.shell.arguments().iter().copied());
        let arguments = arguments.map(str::to_owned).chain([text]).collect();
        run.wait(&spec(&shell, arguments), self.log, self.log_limit, self.masker())
    }

    /// Runs the text in a container of this image.
    fn run_in_container(&self, run: &Running<'_>, image: &str, text: &str) -> Result<Ended, StageError> {
        let client = container::client(self.search_path())?;
        let id_file = run.dir.beside("container");
        let mut env = self.environment(run.dir, "");
        // The image has its own.
        if !self.env.contains_key("PATH") {
            env.remove("PATH");
        }
        let container = Container {
            image,
            shell: self.shell,
            text,
            env: &env,
            secrets: self.secrets,
            network: self.network,
            memory: self.memory,
            stage: &run.dir.stage(),
            id_file: &id_file,
        };
        let arguments = container.arguments(&client)?;
        let mut env = self.host_env.clone();
        let secrets = self.secrets.iter();
        env.extend(secrets.filter_map(|name| Some((name.clone(), self.env.get(name)?.clone()))));
        let watchdog = Watchdog::start(&client, &id_file, &env)?;
        let spec = Spec {
            stage: run.dir.stage(),
            root: run.dir.root(),
            program: client,
            arguments,
            env,
            directory: run.dir.host("work"),
            ..Spec::default()
        };
        let ended = run.wait(&spec, self.log, self.log_limit, self.masker())?;
        // Of a client that was asked to end, the container may be left.
        if ended.status.code().is_some() && ended.over_time.is_none() && !run.limits.is_cancelled() {
            let _ = watchdog.disarm();
        }
        Ok(ended)
    }

    fn search_path(&self) -> &str {
        self.host_env.get("PATH").map_or("", String::as_str)
    }

    /// Masks the values of its secrets.
    fn masker(&self) -> Option<Masker> {
        let hidden = self.secrets.iter().filter_map(|name| self.env.get(name));
        Masker::new(hidden.map(String::as_str))
    }

    /// Stores the log, and removes its file.
    fn store_log(
        &self,
        store: &Store,
        stop: &dyn Fn() -> Result<(), StageError>,
    ) -> Result<Option<BlobRef>, StageError> {
        let mut file = File::open(self.log).map_err(failed("read", self.log))?;
        let mut log = None;
        if file.metadata().map_err(failed("read", self.log))?.len() > 0 {
            let mut writer = store.writer()?;
            copy(&mut file, self.log, stop, |bytes| Ok(writer.put(bytes)?))?;
            log = Some(writer.finish()?);
        }
        let _ = fs::remove_file(self.log);
        Ok(log)
    }

    /// Adds the last lines of the program's output to an error, and the hints that they give.
    fn with_log(&self, mut error: StageError, isolated: Isolated) -> StageError {
        let text = log::tail(self.log, LAST_BYTES).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        if lines.is_empty() {
            let _ = fs::remove_file(self.log);
            return error;
        }
        let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
        for line in last {
            error.message.push_str("\n    | ");
            error.message.extend(line.chars().take(LONGEST_LINE));
        }
        let mut hints: Vec<String> = error.hint.take().into_iter().collect();
        if isolated == Isolated::Namespaces {
            let host = Host {
                path: self.search_path(),
                base: self.base,
                visible: &self.visible(),
            };
            hints.extend(invisible::hints(&last.join("\n"), &host));
        }
        hints.push(format!("its whole output is in {}", self.log.display()));
        error.hint(hints.join("; "))
    }
}

/// The surroundings in which a program is started and watched.
struct Running<'a> {
    sandbox: &'a Sandbox,
    store: &'a Store,
    dir: &'a StageDir,
    isolated: Isolated,
    started: Instant,
    events: &'a dyn EventSink,
    limits: &'a Limits,
}

impl Running<'_> {
    /// Starts a program with a log at `path`, and waits until its family is gone.
    fn wait(&self, spec: &Spec, path: &Path, limit: u64, masker: Option<Masker>) -> Result<Ended, StageError> {
        let (log, output) = LogWriter::start(path, limit, masker).map_err(failed("write", path))?;
        self.limits.stopped(self.started)?;
        let mut running = self.sandbox.run(spec, self.store, output.into())?;
        let ended = watch(&mut running, &log, self.started, self.events, self.limits);
        // Whatever still runs is killed by this.
        drop(running);
        log.finish().map_err(failed("write", path))?;
        ended
    }

    /// Runs a program to its end, and returns the first line of its output.
    fn first_line(&self, spec: &Spec) -> Result<String, StageError> {
        /// The maximum size of the output that is looked at.
        const SHORT: u64 = 64 << 10;
        let path = self.dir.beside("version");
        self.wait(spec, &path, SHORT, None)?;
        let text = log::tail(&path, SHORT + 100).map_err(failed("read", &path))?;
        let text = String::from_utf8_lossy(&text);
        Ok(text.lines().next().unwrap_or_default().to_owned())
    }
}

/// Copies a file in pieces, and stops between two of them when `stop` says so.
pub(super) fn copy(
    file: &mut File,
    path: &Path,
    stop: &dyn Fn() -> Result<(), StageError>,
    mut put: impl FnMut(&[u8]) -> Result<(), StageError>,
) -> Result<(), StageError> {
    let mut piece = vec![0; 1 << 20];
    loop {
        stop()?;
        match file.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(count) => put(&piece[..count])?,
            Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
            Err(err) => return Err(failed("read", path)(err)),
        }
    }
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.mode() & 0o111 != 0)
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
