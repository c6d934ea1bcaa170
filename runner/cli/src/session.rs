//! The context of every command: the working directory, the environment and the verbosity.

use crate::config;
use crate::home;
use cache::Store;
use cache_remote::{Remote, RemoteSettings, SourceFiles, Timing};
use runner_engine::{Failure, no_temporary_directory};
use runner_history::Archive;
use runner_report::reporter::Verbosity;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// Name and version of this program.
pub(crate) const PROGRAM: &str = concat!("runner ", env!("CARGO_PKG_VERSION"));

/// The context of a command.
#[derive(Clone)]
pub(crate) struct Session {
    pub current: PathBuf,
    pub env: BTreeMap<String, String>,
    pub verbosity: Verbosity,
    pub json: bool,
    /// If set, a configured remote is not used.
    pub no_remote: bool,
    /// If set, servers of sources are not asked.
    pub offline: bool,
}

impl Session {
    /// The context in a directory, by default the working directory.
    pub(crate) fn new(directory: Option<&Path>, verbosity: Verbosity, json: bool) -> Result<Self, Failure> {
        if let Some(dir) = directory {
            std::env::set_current_dir(dir).map_err(|err| Failure {
                causes: vec![err.to_string()],
                ..Failure::usage(format!("cannot change to the directory `{}`", dir.display()))
            })?;
        }
        Ok(Self {
            verbosity,
            json,
            no_remote: false,
            offline: false,
            ..Self::bare()?
        })
    }

    /// The context of no command: the working directory and the environment.
    pub(crate) fn bare() -> Result<Self, Failure> {
        let current = std::env::current_dir()
            .map_err(|err| Failure::caused("cannot determine the working directory", &err))?;
        let env = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Ok(Self {
            current,
            env,
            verbosity: Verbosity::Quiet,
            json: false,
            no_remote: true,
            offline: true,
        })
    }

    /// The directory of the store and the runs, for a pipeline in the directory `start` or for a command
    /// without one.
    pub(crate) fn home(&self, start: Option<&Path>) -> PathBuf {
        let variable = self.env.get("RUNNER_HOME").map(String::as_str);
        home::resolve(variable, start.unwrap_or(&self.current), &self.current)
    }

    /// Opens the store of a home with its configured remote.
    pub(crate) fn store(&self, home: &Path) -> Result<Store, Failure> {
        let settings = self.remote_settings(home)?;
        let store = config::open_store(home)?;
        let store = match settings {
            Some(settings) => Remote::new(settings, &store)?.attach(store),
            None => store,
        };
        let files = SourceFiles::new(self.offline, Timing::default(), &self.env);
        Ok(store.with_files(Arc::new(files)))
    }

    /// The configured remote of a home; `None` with `--no-remote`.
    pub(crate) fn remote_settings(&self, home: &Path) -> Result<Option<RemoteSettings>, Failure> {
        match self.no_remote {
            true => Ok(None),
            false => config::remote(home, &self.current, &self.env),
        }
    }

    /// The store and the runs of a command without a pipeline. Missing ones are not created.
    pub(crate) fn archive(&self) -> Result<Archive, Failure> {
        let home = self.home(None);
        if !home.is_dir() {
            return Err(Failure::usage(format!("there is no store in `{}`", home.display()))
                .hint("run a pipeline first, or name its directory with `-C DIR` or RUNNER_HOME"));
        }
        Ok(Archive {
            store: self.store(&home)?,
            runs: home.join("runs"),
        })
    }
}

/// The absolute path of a file's directory.
pub(crate) fn folder_of(current: &Path, file: &Path) -> Option<PathBuf> {
    let file = std::path::absolute(file).unwrap_or_else(|_| current.join(file));
    file.parent().map(Path::to_owned)
}

/// A directory that is removed when it is dropped.
pub(crate) fn temporary_directory() -> Result<TempDir, Failure> {
    tempfile::tempdir().map_err(no_temporary_directory)
}
