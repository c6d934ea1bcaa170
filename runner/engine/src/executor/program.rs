//! Starts a stage's program, in the sandbox or through a container client, and waits for its end.

use super::command_run::Run;
use super::container::{self, Container, Watchdog};
use super::files::failed;
use super::log::{self, LogWriter};
use super::python::Reports;
use super::secrets::Masker;
use super::stage_dir::StageDir;
use super::tools::check_versions;
use super::watch::{Ended, watch};
use runner_pipeline::{LOG_LIMIT, Shell, Tool, find_program};
use runner_sandbox::{Isolated, Spec, Surroundings};
use stages_core::StageError;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The directories of the system's programs.
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Run<'_> {
    /// The path of the shell.
    fn shell_path(&self) -> Result<PathBuf, StageError> {
        let name = self.command.shell.name();
        let tool = self
            .command
            .tools
            .iter()
            .find(|tool| !tool.is_environment() && tool.link() == name);
        let system = || find_program(SYSTEM_PATH, name);
        tool.map(|tool| tool.path.clone()).or_else(system).ok_or_else(|| {
            let error = StageError::new(format!("`{name}` is not installed"));
            match self.command.shell {
                Shell::Bash => error.hint("install it, or write `shell: sh`"),
                Shell::Sh => error,
            }
        })
    }

    /// The files that the program can see besides the system's own.
    pub(super) fn visible(&self) -> Vec<PathBuf> {
        let own = self.command.tools.iter().flat_map(|tool| [&tool.path, &tool.bin]);
        let more = self.command.tools.iter().flat_map(|tool| &tool.visible);
        own.chain(more).cloned().collect()
    }

    /// Links the tools that are single executables into the stage's directory, and returns the program's
    /// `PATH`.
    fn link_tools(&self, dir: &StageDir) -> Result<String, StageError> {
        let mut path = Vec::new();
        let executables: Vec<&Tool> = self
            .command
            .tools
            .iter()
            .filter(|tool| !tool.is_environment())
            .collect();
        if !executables.is_empty() {
            let links = dir.create("tools")?;
            path.push(dir.seen(&links).display().to_string());
            for tool in executables {
                let link = links.join(tool.link());
                symlink(&tool.bin, &link).map_err(failed("link", &link))?;
            }
        }
        let environments = self.command.tools.iter().filter(|tool| tool.is_environment());
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
        if self.command.python.is_some() {
            // Python's iteration order of sets of strings depends on the hash seed.
            env.insert("PYTHONHASHSEED".to_owned(), "0".to_owned());
        }
        env.extend(self.program.env.clone());
        env
    }

    pub(super) fn search_path(&self) -> &str {
        self.program.host_env.get("PATH").map_or("", String::as_str)
    }

    /// Masks the values of the stage's secrets.
    fn masker(&self) -> Option<Masker> {
        let hidden = self
            .command
            .secrets
            .iter()
            .filter_map(|name| self.program.env.get(name));
        Masker::new(hidden.map(String::as_str))
    }
}

/// A program that is started and watched.
pub(super) struct Running<'a> {
    pub run: &'a Run<'a>,
    pub dir: &'a StageDir,
    pub isolated: Isolated,
    /// The control group in which the program's own is created.
    pub group: Option<PathBuf>,
    /// The progress and metrics that a Python function reports.
    pub reports: Option<RefCell<Reports>>,
}

impl Running<'_> {
    /// Runs the shell text, in the sandbox or a container.
    pub(super) fn run(&self, text: String) -> Result<Ended, StageError> {
        match &self.run.command.container {
            Some(image) => self.run_in_container(image, &text),
            None => self.run_in_sandbox(text),
        }
    }

    /// Runs the shell text in the sandbox.
    fn run_in_sandbox(&self, text: String) -> Result<Ended, StageError> {
        let command = self.run.command;
        let path = self.run.link_tools(self.dir)?;
        let shell = self.run.shell_path()?;
        let spec = |program: &Path, arguments: Vec<String>| Spec {
            surroundings: match self.isolated {
                Isolated::Namespaces | Isolated::Landlock | Isolated::Seatbelt => Surroundings {
                    isolated: self.isolated,
                    network: command.network,
                    visible: self.run.visible(),
                    group: self.group.clone(),
                },
                _ => Surroundings {
                    group: self.group.clone(),
                    ..Surroundings::default()
                },
            },
            stage: self.dir.stage(),
            memory: self.run.program.memory,
            program: program.to_owned(),
            arguments,
            env: self.run.environment(self.dir, &path),
            directory: self.dir.seen(&self.dir.host("work")),
        };
        check_versions(&command.tools, |program, name| {
            self.first_line(&spec(program, vec![name.to_owned(), "--version".to_owned()]))
        })?;
        let arguments =
            std::iter::once(command.shell.name()).chain(command.shell.arguments().iter().copied());
        let arguments = arguments.map(str::to_owned).chain([text]).collect();
        self.wait(&spec(&shell, arguments))
    }

    /// Runs the shell text in a container of the image `image`.
    fn run_in_container(&self, image: &str, text: &str) -> Result<Ended, StageError> {
        let command = self.run.command;
        let client = container::client(self.run.search_path())?;
        let id_file = self.dir.beside("container");
        let mut env = self.run.environment(self.dir, "");
        // The image has a `PATH` of its own.
        if !self.run.program.env.contains_key("PATH") {
            env.remove("PATH");
        }
        let container = Container {
            image,
            command,
            text,
            env: &env,
            memory: self.run.program.memory,
            stage: &self.dir.stage(),
            id_file: &id_file,
        };
        let arguments = container.arguments(&client)?;
        let mut env = self.run.program.host_env.clone();
        let secrets = command.secrets.iter();
        env.extend(secrets.filter_map(|name| Some((name.clone(), self.run.program.env.get(name)?.clone()))));
        let watchdog = Watchdog::start(&client, &id_file, &env)?;
        let spec = Spec {
            stage: self.dir.stage(),
            program: client,
            arguments,
            env,
            directory: self.dir.host("work"),
            ..Spec::default()
        };
        let ended = self.wait(&spec)?;
        // A client that was asked to end may have left its container behind.
        if ended.status.code().is_some() && ended.over_time.is_none() && !self.run.limits.is_cancelled() {
            let _ = watchdog.disarm();
        }
        Ok(ended)
    }

    /// Starts the stage's program, and waits until its family is gone.
    fn wait(&self, spec: &Spec) -> Result<Ended, StageError> {
        let limit = self.run.command.log_limit.unwrap_or(LOG_LIMIT);
        self.wait_with(spec, self.run.log, limit, self.run.masker())
    }

    /// Starts a program with a log at `path`, and waits until its family is gone.
    fn wait_with(
        &self,
        spec: &Spec,
        path: &Path,
        limit: u64,
        masker: Option<Masker>,
    ) -> Result<Ended, StageError> {
        let (log, output) = LogWriter::start(path, limit, masker).map_err(failed("write", path))?;
        let run = self.run;
        run.stop()?;
        let mut running = run.sandbox.run(spec, run.store, &output.into())?;
        let pass_on = || {
            if let Some(reports) = &self.reports {
                reports.borrow_mut().forward(run.events);
            }
        };
        let ended = watch(&mut running, &log, run.started, run.events, run.limits, &pass_on);
        pass_on();
        // Dropping the handle kills any process that still runs.
        drop(running);
        log.finish().map_err(failed("write", path))?;
        ended
    }

    /// Runs a program to its end, and returns the first line of its output.
    fn first_line(&self, spec: &Spec) -> Result<String, StageError> {
        /// The maximum size of the output that is looked at.
        const SHORT: u64 = 64 << 10;
        let path = self.dir.beside("version");
        self.wait_with(spec, &path, SHORT, None)?;
        let text = match log::tail(&path, SHORT + 100) {
            // It printed nothing.
            Err(err) if err.kind() == ErrorKind::NotFound => Vec::new(),
            text => text.map_err(failed("read", &path))?,
        };
        let text = String::from_utf8_lossy(&text);
        Ok(text.lines().next().unwrap_or_default().to_owned())
    }
}
