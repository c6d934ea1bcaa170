//! `run:` stages: an external program in an empty directory, with a clean environment, isolated from the host
//! where that is possible.

use super::command_run::Run;
use super::container;
use super::failure::{describe, full};
use super::files::{copy_file, create_parent, failed, read_pieces, refuse_existing};
use super::input_files::InputFiles;
use super::job::Done;
use super::limits::timed_out;
use super::outputs::{TypedFiles, take_in};
use super::program::Running;
use super::python::{Calling, Reports};
use super::stage_dir::StageDir;
use super::undeclared::{undeclared, warning};
use super::watch::Ended;
use crate::text;
use cache::{ArtifactDigest, BlobRef};
use runner_pipeline::{Isolation, command_text, is_plain_path, plain_path};
use runner_sandbox::Isolated;
use stages_core::error::Cause;
use stages_core::{StageError, StageEvent};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The environment variable with which tests disable namespaces.
pub(crate) const NAMESPACES: &str = "RUNNER_TEST_NAMESPACES";

impl Run<'_> {
    /// Runs the program and stores its outputs.
    pub(super) fn execute(&self) -> Result<Done, StageError> {
        self.try_execute().map_err(|err| match (err.cause, self.stop()) {
            // The store cannot tell whether the user or the time limit interrupted it.
            (Cause::Interrupted, Err(reason)) => reason,
            _ => err,
        })
    }

    fn try_execute(&self) -> Result<Done, StageError> {
        let stop = || self.stop();
        let (isolated, refuses_network) = self.isolation()?;
        let group = self.group(isolated)?;
        let is_limited = isolated == Isolated::Container || group.is_some();
        let memory_limit = self.program.memory.filter(|_| is_limited);
        self.events.emit(StageEvent::Isolation {
            isolation: isolated.name().to_owned(),
            network: self.command.network || !refuses_network,
            memory: memory_limit,
        });
        if isolated == Isolated::None
            && self.program.isolation != Isolation::None
            && let Some(reason) = self.sandbox.refusal()
        {
            self.events.emit(StageEvent::Warning {
                message: format!("runs without isolation: {reason}"),
                hint: Some("`isolation: none` in `config.yaml` accepts that".to_owned()),
            });
        }
        let dir = StageDir::new(self.store, isolated, &self.sandbox.emptied)?;
        let work = dir.host("work");
        for source in self.files {
            let to = work.join(&source.name);
            create_parent(&to)?;
            copy_file(&source.path, &to, &stop)?;
            // The program reads this copy, so its digest must match the key.
            source.check(BlobRef::of_file_unless(&to, &|| stop().is_err())?.blob)?;
        }
        self.fetch()?;
        let mut inputs = InputFiles::new(isolated.has_own_root());
        let paths = self.write_inputs(&mut inputs, &dir)?;
        for name in self.command.outputs.values().filter(|name| name.contains('/')) {
            create_parent(&work.join(name))?;
        }
        let calling = match &self.command.python {
            Some(call) => Some(Calling::new(self, call, &paths, &dir)?),
            None => None,
        };
        let reports = match calling {
            Some(_) => Some(Reports::new(&dir)?.into()),
            None => None,
        };
        let text = match &calling {
            Some(calling) => calling.text.clone(),
            None => self.text(&paths, &dir),
        };
        let running = Running {
            run: self,
            dir: &dir,
            isolated,
            group,
            reports,
        };
        let ended = running.run(text)?;
        let is_cut_off = ended.over_time.is_some() && !ended.status.success();
        if !self.limits.is_cancelled() && !is_cut_off {
            inputs.check(self.store, &stop)?;
        }
        self.check_end(&ended, &dir, isolated)?;
        let outputs = self.take_in_outputs(calling.as_ref(), &dir, isolated)?;
        let log = self.store_log()?;
        self.sandbox.emptied.put(dir);
        Ok(Done {
            outputs,
            log,
            peak_memory: ended.peak_memory,
            isolation: Some(isolated.name().to_owned()),
            memory_limit,
            executed: ended.executed.map(|all| all.into_iter().collect()),
            ..Done::default()
        })
    }

    /// The isolation in force, and whether it refuses the network.
    fn isolation(&self) -> Result<(Isolated, bool), StageError> {
        let namespaces = self
            .program
            .host_env
            .get(NAMESPACES)
            .is_none_or(|value| value != "none");
        match &self.command.container {
            Some(_) => Ok((Isolated::Container, true)),
            None => self.sandbox.isolation(self.program.isolation, namespaces, self.store),
        }
    }

    /// The parent of the program's control group. A program without namespaces needs a control group only to
    /// limit its memory.
    fn group(&self, isolated: Isolated) -> Result<Option<PathBuf>, StageError> {
        match (isolated, self.program.memory) {
            (Isolated::Container, _) | (Isolated::None | Isolated::Landlock | Isolated::Seatbelt, None) => {
                Ok(None)
            }
            _ => self.sandbox.group(self.store),
        }
    }

    /// The text passed to the shell.
    fn text(&self, paths: &BTreeMap<&str, Vec<PathBuf>>, dir: &StageDir) -> String {
        let seen = |path: &Path| dir.seen(path).display().to_string();
        let work = dir.host("work");
        command_text(&self.command.command, |space, name| match space {
            "needs" => {
                let paths: Vec<String> = paths.get(name)?.iter().map(|path| seen(path)).collect();
                Some(paths.join(" "))
            }
            _ => self.command.outputs.get(name).map(|file| seen(&work.join(file))),
        })
    }

    /// Writes the inputs into the stage's directory, and returns their paths on the host, by port.
    fn write_inputs(
        &self,
        inputs: &mut InputFiles,
        dir: &StageDir,
    ) -> Result<BTreeMap<&str, Vec<PathBuf>>, StageError> {
        let mut needs = BTreeMap::new();
        for (port, artifacts) in self.inputs {
            let base = dir.host("needs").join(port);
            refuse_existing(&base)?;
            let mut paths = Vec::new();
            for (i, input) in artifacts.iter().enumerate() {
                let base = match self.command.points.get(port).and_then(|names| names.get(i)) {
                    Some(name) if is_plain_path(name) => base.join(name),
                    Some(name) => base.join(format!("{}_{i}", plain_path(name))),
                    None if artifacts.len() == 1 => base.clone(),
                    None => base.join(i.to_string()),
                };
                paths.push(inputs.write_out(self.store, &input.artifact, &base, &|| self.stop())?);
            }
            needs.insert(port.as_str(), paths);
        }
        Ok(needs)
    }

    /// Fails if the program failed, and warns about programs that it executed and that are not in the key.
    fn check_end(&self, ended: &Ended, dir: &StageDir, isolated: Isolated) -> Result<(), StageError> {
        let status = ended.status;
        if let Some(limit) = ended.over_time.filter(|_| !status.success()) {
            let error = timed_out(limit);
            return Err(match &self.command.python {
                // The driver writes where it was.
                Some(_) => self.with_log(error, dir, isolated),
                None => error,
            });
        }
        if self.limits.is_cancelled() && !status.success() {
            return Err(StageError::interrupted());
        }
        let executed = ended.executed.as_ref();
        if let Some((message, hint)) =
            executed.and_then(|all| warning(&undeclared(all, &self.command.tools), self.search_path()))
        {
            self.events.emit(StageEvent::Warning {
                message,
                hint: Some(hint),
            });
        }
        // A shell may ignore that one of its children was killed, but the result then depends on the limit.
        if let Some(limit) = self.program.memory.filter(|_| ended.out_of_memory) {
            let error = StageError::new(format!("was killed for memory: its limit is {}", text::size(limit)));
            let error = error.hint("raise `memory:` in the stage's `resources:`");
            return Err(self.with_log(error, dir, isolated));
        }
        if status.success() {
            return Ok(());
        }
        let container_reason =
            |code| container::reason(code, self.command.shell).filter(|_| self.command.container.is_some());
        let reported = self
            .command
            .python
            .as_ref()
            .and_then(|_| Calling::error(dir, &|| Ok(())));
        if let Some(error) = reported {
            return Err(self.with_log(error, dir, isolated));
        }
        let program = match &self.command.python {
            Some(python) => format!("the interpreter that calls `{}`", python.call),
            None => "the command".to_owned(),
        };
        let what = format!("{program} {}", describe(status));
        let error = match status.code().and_then(container_reason) {
            Some((reason, hint)) => StageError::new(format!("{what}: {reason}")).hint(hint),
            None => full(&dir.host("work"), &what).unwrap_or_else(|| StageError::new(what)),
        };
        Err(self.with_log(error, dir, isolated))
    }

    /// Stores the program's outputs.
    fn take_in_outputs(
        &self,
        calling: Option<&Calling<'_>>,
        dir: &StageDir,
        isolated: Isolated,
    ) -> Result<BTreeMap<String, ArtifactDigest>, StageError> {
        let stop = || self.stop();
        let mut outputs = match calling {
            Some(calling) => calling.take_in(dir).map_err(|err| match err.cause {
                Cause::Failed => self.with_log(err, dir, isolated),
                _ => err,
            })?,
            None => BTreeMap::new(),
        };
        for (name, file) in &self.command.outputs {
            if outputs.contains_key(name) {
                continue;
            }
            let path = dir.host("work").join(file);
            if fs::symlink_metadata(&path).is_err() {
                return Err(self.with_log(
                    StageError::new(format!(
                        "the command succeeded, but its output `{name}` (`{file}`) is missing"
                    ))
                    .hint(format!("the command must write it at ${{outputs.{name}}}")),
                    dir,
                    isolated,
                ));
            }
            let digest = match self.command.types.get(name) {
                None => take_in(self.store, name, &path, dir, &stop)?,
                Some(ty) => TypedFiles::read(name, &path, dir, &stop)?.store(self, *ty)?,
            };
            outputs.insert(name.clone(), digest);
        }
        Ok(outputs)
    }

    /// Stores the program's log, if it wrote anything, and removes the log file.
    fn store_log(&self) -> Result<Option<BlobRef>, StageError> {
        let mut file = match File::open(self.log) {
            // The program wrote nothing.
            Err(err) if err.kind() == ErrorKind::NotFound => return Ok(None),
            file => file.map_err(failed("read", self.log))?,
        };
        let mut writer = self.store.writer()?;
        read_pieces(&mut file, self.log, &|| self.stop(), |bytes| Ok(writer.put(bytes)?))?;
        let log = writer.finish()?;
        let _ = fs::remove_file(self.log);
        Ok(Some(log))
    }

    /// Fetches blobs that are not in the local store from the remote store.
    fn fetch(&self) -> Result<(), StageError> {
        let entries = self.inputs.values().flatten().flat_map(|input| &input.artifact.entries);
        let absent: Vec<_> = entries
            .map(cache::Entry::blob_ref)
            .filter(|blob| !self.store.has_here(*blob))
            .collect();
        if !absent.is_empty() {
            let bytes = absent.iter().fold(0_u64, |sum, blob| sum.saturating_add(blob.size));
            self.events.emit(StageEvent::Progress {
                done: 0,
                total: None,
                message: format!("fetching {} from the remote store", text::size(bytes)),
            });
            self.store.fetch_all(absent)?;
        }
        Ok(())
    }
}
