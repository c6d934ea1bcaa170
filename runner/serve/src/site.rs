//! The home that is served, and what the server is given.

use crate::access::Access;
use crate::connections::ClientLimits;
use crate::live::Hub;
use crate::pages::Days;
use crate::pulse::Heart;
use cache::Store;
use runner_engine::Failure;
use runner_history as history;
use runner_pipeline::Schedule;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The services of the program that the pages need.
pub trait Host: Send + Sync {
    /// Opens the store of a home.
    fn store(&self, home: &Path) -> Result<Store, Failure>;

    /// The schedule of a pipeline file as it is now.
    fn schedule(&self, file: &Path) -> Result<Schedule, Failure>;

    /// Prints a warning.
    fn warn(&self, text: &str);
}

/// The settings of a server.
pub struct Server {
    /// The services of the program.
    pub host: Arc<dyn Host>,
    /// The path of the program, which runs pipelines and nights.
    pub program: PathBuf,
    /// The directory of the store and of the history.
    pub home: PathBuf,
    /// The directory in which pipelines are started.
    pub directory: PathBuf,
    /// The address to listen on.
    pub bind: SocketAddr,
    /// The token that every request needs. Without one, a random token is needed where `bind` is not a
    /// loopback address.
    pub token: Option<String>,
    /// If true, runs may be started and cancelled.
    pub allow_run: bool,
    /// The pipelines whose nights are run.
    pub schedule: Vec<PathBuf>,
    /// The limits of clients.
    pub limits: ClientLimits,
    /// The flag that stops the server.
    pub stop: Arc<AtomicBool>,
}

/// The home that is served, and the rules of the server.
#[derive(Clone)]
pub(crate) struct Site {
    pub host: Arc<dyn Host>,
    pub program: PathBuf,
    /// The directory of the store and of the history.
    pub home: PathBuf,
    /// The directory of the runs.
    pub runs: PathBuf,
    /// The directory in which pipelines are started.
    pub directory: PathBuf,
    /// True if runs may be started and cancelled.
    pub allow_run: bool,
    pub access: Arc<Access>,
    pub hub: Hub,
    pub heart: Heart,
    /// The rows by day of data sets.
    pub days: Days,
}

impl Site {
    pub(crate) fn store(&self) -> Result<Store, Failure> {
        if !self.home.join("format").is_file() {
            return Err(
                Failure::usage(format!("there is no store in `{}`", self.home.display()))
                    .hint("run a pipeline first"),
            );
        }
        self.host.store(&self.home)
    }

    /// The field of a form that shows that it is a page of this server.
    pub(crate) fn form_secret(&self) -> String {
        format!(
            "<input type=\"hidden\" name=\"secret\" value=\"{}\">",
            self.access.form_secret
        )
    }

    /// The full id of a run that an address names.
    pub(crate) fn run(&self, name: &str) -> Result<String, Failure> {
        history::resolve(&self.runs, name)
    }
}
