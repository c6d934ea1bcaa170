//! The sandbox of an executor: its server, and the isolation that it can provide.

use super::stage_dir::Emptied;
use cache::Store;
use runner_pipeline::Isolation;
use runner_sandbox::{Client, Isolated, Probed, Running, Spec};
use rustix::fd::OwnedFd;
use stages_core::StageError;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The sandbox of an executor. Its server is started with the first program.
pub(crate) struct Sandbox {
    /// The path of the executable that runs the sandbox's server.
    program: PathBuf,
    client: OnceLock<Result<Client, String>>,
    probed: OnceLock<Probed>,
    /// True once the reason for the missing isolation has been asked for.
    is_said: AtomicBool,
    /// The emptied directories of its programs.
    pub(super) emptied: Emptied,
}

impl Sandbox {
    /// Creates a sandbox whose server is the executable `program`.
    pub(super) fn new(program: PathBuf) -> Self {
        Self {
            program,
            client: OnceLock::new(),
            probed: OnceLock::new(),
            is_said: AtomicBool::new(false),
            emptied: Emptied::default(),
        }
    }

    fn client(&self, store: &Store) -> Result<&Client, StageError> {
        let start = || {
            let started = Client::start(&self.program, store.root());
            started.map_err(|err| format!("cannot start `runner sandbox`: {err}"))
        };
        self.client.get_or_init(start).as_ref().map_err(StageError::new)
    }

    /// The isolation and the limits that are available; they are probed once.
    fn probed(&self, store: &Store) -> Result<&Probed, StageError> {
        let client = self.client(store)?;
        let probe = || match store.workspace() {
            Ok(dir) => Probed::with(client, dir.path()),
            Err(err) => Probed::refused(&err.to_string()),
        };
        Ok(self.probed.get_or_init(probe))
    }

    /// Determines the isolation of a program that requests `wanted`, and whether it blocks the network.
    /// `namespaces` tells whether namespaces may be used where the system has them.
    pub(super) fn isolation(
        &self,
        wanted: Isolation,
        namespaces: bool,
        store: &Store,
    ) -> Result<(Isolated, bool), StageError> {
        if wanted == Isolation::None {
            return Ok((Isolated::None, false));
        }
        let probed = self.probed(store)?;
        let isolated = match probed.landlock {
            Ok(_) if !namespaces => Isolated::Landlock,
            _ => probed.strongest(),
        };
        match (&probed.namespaces, wanted) {
            (Err(reason), Isolation::Required) => Err(StageError::new(format!(
                "the stage has to be isolated, which this system cannot do: {reason}"
            ))
            .hint("`isolation: auto` runs it with less isolation, or none, where there is no more")),
            _ => Ok((isolated, isolated != Isolated::None && probed.refuses_network())),
        }
    }

    /// The reason why a program runs without isolation although it did not request that; returned only for
    /// the first such program.
    pub(super) fn refusal(&self) -> Option<&str> {
        let reason = self.probed.get()?.namespaces.as_ref().err()?;
        (!self.is_said.swap(true, Ordering::Relaxed)).then_some(reason)
    }

    /// The control group in which programs' own control groups are created; `None` where their limits cannot
    /// be enforced.
    pub(super) fn group(&self, store: &Store) -> Result<Option<PathBuf>, StageError> {
        Ok(self.probed(store)?.limits.clone().ok())
    }

    /// Starts a program whose standard output and error are `log`.
    pub(super) fn run(&self, spec: &Spec, store: &Store, log: &OwnedFd) -> Result<Running, StageError> {
        let started = self.client(store)?.run(spec, log);
        started.map_err(|err| StageError::new(format!("cannot reach `runner sandbox`: {err}")))
    }
}
