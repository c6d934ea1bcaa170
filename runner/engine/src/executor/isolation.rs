//! The sandbox of an executor: its server, and the isolation that it can give.

use cache::Store;
use runner_pipeline::Isolation;
use runner_sandbox::{Client, Isolated, Probed, Running, Spec};
use rustix::fd::OwnedFd;
use stages_core::StageError;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The sandbox of an executor. Its server starts with the first program.
pub(crate) struct Sandbox {
    /// This program.
    program: PathBuf,
    client: OnceLock<Result<Client, String>>,
    probed: OnceLock<Probed>,
    /// True after the reason was asked for.
    is_said: AtomicBool,
}

impl Sandbox {
    /// A sandbox whose server is the program `program`.
    pub fn new(program: PathBuf) -> Self {
        Self {
            program,
            client: OnceLock::new(),
            probed: OnceLock::new(),
            is_said: AtomicBool::new(false),
        }
    }

    fn client(&self, store: &Store) -> Result<&Client, StageError> {
        let start = || {
            let started = Client::start(&self.program, store.root());
            started.map_err(|err| format!("cannot start `runner sandbox`: {err}"))
        };
        self.client.get_or_init(start).as_ref().map_err(StageError::new)
    }

    /// The isolation and the limits that can be had, which is tried once.
    fn probed(&self, store: &Store) -> Result<&Probed, StageError> {
        let client = self.client(store)?;
        let probe = || match store.workspace() {
            Ok(dir) => Probed::with(client, dir.path()),
            Err(err) => Probed {
                namespaces: Err(err.to_string()),
                landlock: Err(err.to_string()),
                limits: Err(err.to_string()),
            },
        };
        Ok(self.probed.get_or_init(probe))
    }

    /// The isolation of a program that asks for `wanted`, with or without `namespaces` where the system has
    /// them, and whether it refuses the network.
    ///
    /// # Errors
    /// If isolation is required and cannot be had.
    pub fn isolation(
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
                "the stage has to be isolated, and this system cannot: {reason}"
            ))
            .hint("`isolation: auto` runs it with less isolation, or none, where there is no more")),
            _ => Ok((isolated, isolated != Isolated::None && probed.refuses_network())),
        }
    }

    /// The reason why a program runs without isolation although it did not ask for that; only for the first
    /// one.
    pub fn refusal(&self) -> Option<&str> {
        let reason = self.probed.get()?.namespaces.as_ref().err()?;
        (!self.is_said.swap(true, Ordering::Relaxed)).then_some(reason)
    }

    /// The control group in which those of programs are created; `None` where their limits cannot be
    /// enforced.
    ///
    /// # Errors
    /// If the server cannot be started.
    pub fn group(&self, store: &Store) -> Result<Option<PathBuf>, StageError> {
        Ok(self.probed(store)?.limits.clone().ok())
    }

    /// Starts a program whose standard output and error are `log`.
    pub fn run(&self, spec: &Spec, store: &Store, log: &OwnedFd) -> Result<Running, StageError> {
        let started = self.client(store)?.run(spec, log);
        started.map_err(|err| StageError::new(format!("cannot reach `runner sandbox`: {err}")))
    }
}
