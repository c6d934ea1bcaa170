//! The call of `run-due` that a timer makes.

use super::entry::Entry;
use crate::session::Session;
use runner_engine::Failure;
use std::path::PathBuf;

/// The time after which timers that call every few minutes run a night again that failed.
pub(super) const RETRY_AFTER: &str = "1h";

/// The call of `run-due` for a pipeline.
pub(super) struct Call {
    /// The pipeline's name.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// The pipeline file.
    pub file: PathBuf,
    /// The directory of the file.
    pub folder: PathBuf,
    /// The environment variables of this program that it needs.
    pub env: Vec<(&'static str, String)>,
}

impl Call {
    pub(super) fn new(session: &Session, entry: &Entry) -> Result<Self, Failure> {
        let program = std::env::current_exe()
            .map_err(|err| Failure::caused("cannot determine the path of this program", &err))?;
        let mut env = Vec::new();
        // Services have a short PATH of their own, on which `python3` may be another one and a tool be
        // missing.
        if let Some(path) = session.env.get("PATH") {
            env.push(("PATH", path.clone()));
        }
        if session.env.get("RUNNER_HOME").is_some_and(|home| !home.is_empty()) {
            env.push(("RUNNER_HOME", entry.home.display().to_string()));
        }
        if let Some(remote) = session.env.get("RUNNER_REMOTE") {
            env.push(("RUNNER_REMOTE", remote.clone()));
        }
        let call = Self {
            name: entry.scheduled.name.clone(),
            program,
            folder: entry.scheduled.base.clone(),
            file: entry.file.clone(),
            env,
        };
        let mut texts = call.paths();
        texts.extend(call.env.iter().map(|(_, value)| value.clone()));
        match texts.iter().find(|text| text.contains(['\n', '\r', '\0'])) {
            None => Ok(call),
            Some(text) => Err(Failure::usage(format!("`{}` has a line break", text.escape_debug()))
                .hint("a timer cannot refer to such a file: rename it")),
        }
    }

    fn paths(&self) -> Vec<String> {
        let paths = [&self.program, &self.file, &self.folder];
        paths.map(|path| path.display().to_string()).into()
    }
}
