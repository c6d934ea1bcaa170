//! A running program, and the start of its first process.

use super::isolated_by::Isolated;
#[cfg(target_os = "linux")]
use super::landlock;
#[cfg(target_os = "linux")]
use super::link::Link;
use super::process::{self, Executable};
use super::protocol::Spec;
#[cfg(target_os = "macos")]
use super::seatbelt;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use std::os::fd::AsFd as _;
use std::path::PathBuf;

/// A running program.
pub(super) struct Family {
    /// The process whose exit ends the program: init of its PID namespace, or the shell.
    pub first: Pid,
    /// A descriptor that becomes readable when the first process has exited.
    pub ended: Option<OwnedFd>,
    /// The link to a family in namespaces, which the kernel kills with its first process.
    #[cfg(target_os = "linux")]
    pub link: Option<Link>,
}

impl Family {
    /// The descriptors that are readable when the family has something to report.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let ended = self.ended.iter().map(OwnedFd::as_fd);
        #[cfg(target_os = "linux")]
        let ended = ended.chain(self.link.iter().flat_map(Link::descriptors));
        ended
    }

    /// True for a family in namespaces.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_isolated(&self) -> bool {
        self.link.is_some()
    }

    /// Always false: this system has no namespaces.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn is_isolated(&self) -> bool {
        false
    }
}

/// Starts a program without namespaces. `entrance` is the file of its control group.
pub(super) fn plain(spec: &Spec, entrance: Option<PathBuf>, log: OwnedFd) -> Result<Family, String> {
    // Changing control groups takes the system some milliseconds.
    let entrance = entrance.filter(|_| spec.memory.is_some());
    #[cfg(target_os = "linux")]
    let rules = match spec.surroundings.isolated {
        Isolated::Landlock => Some(landlock::rules(spec)?),
        _ => None,
    };
    let first = become_program(spec, &log, || {
        #[cfg(target_os = "linux")]
        let _ = std::fs::write("/proc/self/oom_score_adj", "500");
        if let Some(entrance) = &entrance {
            std::fs::write(entrance, "0").map_err(|err| format!("write `{}`: {err}", entrance.display()))?;
        }
        #[cfg(target_os = "linux")]
        if let Some(rules) = &rules {
            landlock::restrict(rules)?;
        }
        Ok(())
    })?;
    Ok(Family {
        first,
        #[cfg(target_os = "linux")]
        ended: rustix::process::pidfd_open(first, rustix::process::PidfdFlags::empty()).ok(),
        #[cfg(not(target_os = "linux"))]
        ended: exit_queue(first),
        #[cfg(target_os = "linux")]
        link: None,
    })
}

/// Starts the program as a child in its own session; the child calls `last` before it executes the program.
pub(super) fn become_program(
    spec: &Spec,
    log: &OwnedFd,
    mut last: impl FnMut() -> Result<(), String>,
) -> Result<Pid, String> {
    let what = || format!("execute `{}`", spec.program.display());
    let program = match spec.surroundings.isolated {
        #[cfg(target_os = "macos")]
        Isolated::Seatbelt => {
            let (program, arguments) = seatbelt::command(spec);
            Executable::new(&program, &arguments, &spec.env)
        }
        _ => Executable::new(&spec.program, &spec.arguments, &spec.env),
    };
    let program = program.map_err(|err| format!("{}: {err}", what()))?;
    let execute = program.ready();
    process::spawn(&mut || {
        let prepare = || -> Result<(), Errno> {
            rustix::process::setsid()?;
            rustix::stdio::dup2_stdout(log)?;
            rustix::stdio::dup2_stderr(log)?;
            rustix::process::chdir(&spec.directory)
        };
        if let Err(err) = prepare() {
            return format!("enter `{}`: {err}", spec.directory.display());
        }
        for signal in [Signal::PIPE, Signal::CHILD, Signal::TERM, Signal::INT] {
            process::default_signal(signal);
        }
        match last() {
            Ok(()) => format!("{}: {}", what(), execute()),
            Err(reason) => reason,
        }
    })
}

/// A queue of events that becomes readable when a child has exited; `None` if it has already.
#[cfg(not(target_os = "linux"))]
fn exit_queue(child: Pid) -> Option<OwnedFd> {
    use rustix::event::kqueue::{Event, EventFilter, EventFlags, ProcessEvents, kevent, kqueue};
    let queue = kqueue().ok()?;
    let filter = EventFilter::Proc {
        pid: child,
        flags: ProcessEvents::EXIT,
    };
    let exit = [Event::new(filter, EventFlags::ADD, std::ptr::null_mut())];
    #[expect(unsafe_code, reason = "no safe function watches a process")]
    // SAFETY: the event refers to a process, not to a descriptor that may be closed.
    let added = unsafe { kevent(&queue, &exit, &mut [] as &mut [Event], None) };
    added.ok().map(|_| queue)
}
