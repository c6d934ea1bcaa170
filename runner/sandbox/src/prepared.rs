//! The surroundings that a supervisor prepares, and the start of programs in them.

use super::family::{Family, plain};
#[cfg(target_os = "linux")]
use super::group::Group;
#[cfg(target_os = "linux")]
use super::isolated;
use super::isolated_by::Isolated;
#[cfg(target_os = "linux")]
use super::namespaces::Namespaces;
use super::protocol::{Spec, Surroundings};
use rustix::fd::OwnedFd;

/// The surroundings of programs, as far as they are prepared only once.
pub(super) struct Prepared {
    pub surroundings: Surroundings,
    /// The namespaces of isolated programs.
    #[cfg(target_os = "linux")]
    namespaces: Option<Namespaces>,
    #[cfg(target_os = "linux")]
    group: Option<Group>,
}

impl Prepared {
    /// Prepares the surroundings of a program.
    #[cfg(target_os = "linux")]
    pub(crate) fn new(spec: &Spec) -> Result<Self, String> {
        let wanted = &spec.surroundings;
        // The group's files belong to this user, not to the user of the namespaces.
        let group = wanted.group.as_deref().map(Group::new).transpose()?;
        let namespaces = if wanted.isolated == Isolated::Namespaces {
            Some(Namespaces::enter(wanted, &spec.stage)?)
        } else {
            rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
                .map_err(|err| format!("become a child subreaper: {err}"))?;
            None
        };
        Ok(Self {
            surroundings: wanted.clone(),
            namespaces,
            group,
        })
    }

    /// Prepares the surroundings of a program: this system has none but the host's.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn new(spec: &Spec) -> Result<Self, String> {
        if !matches!(spec.surroundings.isolated, Isolated::None | Isolated::Seatbelt) {
            return Err("only Linux has namespaces and Landlock".to_owned());
        }
        Ok(Self {
            surroundings: spec.surroundings.clone(),
        })
    }

    /// Starts a program.
    #[cfg(target_os = "linux")]
    pub(crate) fn start(&mut self, spec: &Spec, log: OwnedFd) -> Result<Family, String> {
        if let Some(group) = &mut self.group {
            group.begin(spec.memory)?;
        }
        let group = self.group.as_ref();
        match &self.namespaces {
            Some(namespaces) => isolated::start(spec, namespaces, group.map(Group::dir), log),
            None => plain(spec, group.map(Group::entrance), log),
        }
    }

    /// Starts a program.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn start(&mut self, spec: &Spec, log: OwnedFd) -> Result<Family, String> {
        plain(spec, None, log)
    }

    /// True if a process of the last program was killed for memory.
    #[cfg(target_os = "linux")]
    pub(crate) fn was_out_of_memory(&self) -> bool {
        self.group.as_ref().is_some_and(Group::was_out_of_memory)
    }

    /// Always false: this system has no control groups.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn was_out_of_memory(&self) -> bool {
        false
    }
}
