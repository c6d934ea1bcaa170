//! The start of a stage's program, in the sandbox or by the client of containers, and the wait for its end.

use super::command_run::Run;
use super::container::{self, Container, Watchdog};
use super::files::failed;
use super::isolation::Sandbox;
use super::limits::Limits;
use super::log::{self, LogWriter};
use super::python::Reports;
use super::secrets::Masker;
use super::stage_dir::StageDir;
use super::tools::check_versions;
use super::watch::{Ended, watch};
use cache::Store;
use runner_pipeline::{Shell, Tool};
use runner_sandbox::{Isolated, Spec, Surroundings};
use stages_core::{EventSink, StageError};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The directories of the system's programs.
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Run<'_> {
    /// Runs the text, in the sandbox or a container.
    pub(super) fn run(&self, run: &Running<'_>, text: String) -> Result<Ended, StageError> {
        match &self.command.container {
            Some(image) => self.run_in_container(run, image, &text),
            None => self.run_in_sandbox(run, text),
        }
    }

    /// The path of the shell.
    fn shell_path(&self) -> Result<PathBuf, StageError> {
        let name = self.command.shell.name();
        let tool = self
            .command
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
            match self.command.shell {
                Shell::Bash => error.hint("install it, or write `shell: sh`"),
                Shell::Sh => error,
            }
        })
    }

    /// The files that the program sees besides the system's own.
    pub(super) fn visible(&self) -> Vec<PathBuf> {
        let own = self.command.tools.iter().flat_map(|tool| [&tool.path, &tool.bin]);
        let more = self.command.tools.iter().flat_map(|tool| &tool.visible);
        own.chain(more).cloned().collect()
    }

    /// Links the tools that are single executables into the stage's directory. Returns the PATH.
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
            // The order of sets of text is that of their hashes.
            env.insert("PYTHONHASHSEED".to_owned(), "0".to_owned());
        }
        env.extend(self.program.env.clone());
        env
    }

    /// Runs the text in the sandbox.
    fn run_in_sandbox(&self, run: &Running<'_>, text: String) -> Result<Ended, StageError> {
        let path = self.link_tools(run.dir)?;
        let shell = self.shell_path()?;
        let spec = |program: &Path, arguments: Vec<String>| Spec {
            surroundings: match run.isolated {
                Isolated::Namespaces | Isolated::Landlock => Surroundings {
                    isolated: run.isolated,
                    network: self.command.network,
                    visible: self.visible(),
                    group: run.group.clone(),
                },
                _ => Surroundings {
                    group: run.group.clone(),
                    ..Surroundings::default()
                },
            },
            stage: run.dir.stage(),
            memory: self.program.memory,
            program: program.to_owned(),
            arguments,
            env: self.environment(run.dir, &path),
            directory: run.dir.seen(&run.dir.host("work")),
        };
        check_versions(&self.command.tools, |program, name| {
            run.first_line(&spec(program, vec![name.to_owned(), "--version".to_owned()]))
        })?;
        let arguments =
            std::iter::once(self.command.shell.name()).chain(self.command.shell.arguments().iter().copied());
        let arguments = arguments.map(str::to_owned).chain([text]).collect();
        run.wait(
            &spec(&shell, arguments),
            self.log,
            self.command.log_limit,
            self.masker(),
        )
    }

    /// Runs the text in a container of this image.
    fn run_in_container(&self, run: &Running<'_>, image: &str, text: &str) -> Result<Ended, StageError> {
        let client = container::client(self.search_path())?;
        let id_file = run.dir.beside("container");
        let mut env = self.environment(run.dir, "");
        // The image has its own.
        if !self.program.env.contains_key("PATH") {
            env.remove("PATH");
        }
        let container = Container {
            image,
            command: self.command,
            text,
            env: &env,
            memory: self.program.memory,
            stage: &run.dir.stage(),
            id_file: &id_file,
        };
        let arguments = container.arguments(&client)?;
        let mut env = self.program.host_env.clone();
        let secrets = self.command.secrets.iter();
        env.extend(secrets.filter_map(|name| Some((name.clone(), self.program.env.get(name)?.clone()))));
        let watchdog = Watchdog::start(&client, &id_file, &env)?;
        let spec = Spec {
            stage: run.dir.stage(),
            program: client,
            arguments,
            env,
            directory: run.dir.host("work"),
            ..Spec::default()
        };
        let ended = run.wait(&spec, self.log, self.command.log_limit, self.masker())?;
        // Of a client that was asked to end, the container may be left.
        if ended.status.code().is_some() && ended.over_time.is_none() && !run.limits.is_cancelled() {
            let _ = watchdog.disarm();
        }
        Ok(ended)
    }

    pub(super) fn search_path(&self) -> &str {
        self.program.host_env.get("PATH").map_or("", String::as_str)
    }

    /// Masks the values of its secrets.
    fn masker(&self) -> Option<Masker> {
        let hidden = self
            .command
            .secrets
            .iter()
            .filter_map(|name| self.program.env.get(name));
        Masker::new(hidden.map(String::as_str))
    }
}

/// The surroundings in which a program is started and watched.
pub(super) struct Running<'a> {
    pub sandbox: &'a Sandbox,
    pub store: &'a Store,
    pub dir: &'a StageDir,
    pub isolated: Isolated,
    /// The control group in which the program's own is created.
    pub group: Option<PathBuf>,
    pub started: Instant,
    pub events: &'a dyn EventSink,
    pub limits: &'a Limits,
    /// The progress and metrics of a function.
    pub reports: Option<RefCell<Reports>>,
}

impl Running<'_> {
    /// Starts a program with a log at `path`, and waits until its family is gone.
    fn wait(
        &self,
        spec: &Spec,
        path: &Path,
        limit: u64,
        masker: Option<Masker>,
    ) -> Result<Ended, StageError> {
        let (log, output) = LogWriter::start(path, limit, masker).map_err(failed("write", path))?;
        self.limits.stopped(self.started)?;
        let mut running = self.sandbox.run(spec, self.store, &output.into())?;
        let pass_on = || {
            if let Some(reports) = &self.reports {
                reports.borrow_mut().forward(self.events);
            }
        };
        let ended = watch(&mut running, &log, self.started, self.events, self.limits, &pass_on);
        pass_on();
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

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.mode() & 0o111 != 0)
}
