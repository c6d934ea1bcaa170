//! Entering namespaces of this process's own.

use rustix::io::Errno;
use rustix::thread::UnshareFlags;
use std::fmt;
use std::fs;

/// A step of isolation that the system refused.
pub(super) struct Refused {
    /// The step.
    pub step: String,
    /// The system's error.
    pub error: Errno,
}

impl Refused {
    /// An error of the step `step`.
    pub fn at(step: impl Into<String>) -> impl FnOnce(Errno) -> Self {
        let step = step.into();
        move |error| Self { step, error }
    }

    /// An input or output error of the step `step`.
    pub fn io(step: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let step = step.into();
        move |err| Self {
            step,
            error: Errno::from_io_error(&err).unwrap_or(Errno::IO),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, std::io::Error::from(self.error))
    }
}

/// Moves this process to a user namespace with the same user and group, and to an IPC, UTS and (unless it uses the `network`) network namespace. Its
/// next child is the first process of a PID namespace. Its files stay the host's: it reads `/proc` by the host's ids.
pub(super) fn enter(network: bool) -> Result<(), Refused> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let mut flags = UnshareFlags::NEWUSER | UnshareFlags::NEWPID | UnshareFlags::NEWIPC | UnshareFlags::NEWUTS;
    flags.set(UnshareFlags::NEWNET, !network);
    unshare(flags).map_err(Refused::at("create namespaces"))?;
    let map = |file: &str, text: String| fs::write(file, text).map_err(Refused::io(format!("write `{file}`")));
    // A process without privileges has to give up changing groups first.
    map("/proc/self/setgroups", "deny".to_owned())?;
    map("/proc/self/uid_map", format!("{0} {0} 1", user.as_raw()))?;
    map("/proc/self/gid_map", format!("{0} {0} 1", group.as_raw()))
}

/// Moves this process to a mount namespace.
pub(super) fn enter_mounts() -> Result<(), Refused> {
    unshare(UnshareFlags::NEWNS).map_err(Refused::at("create a mount namespace"))
}

fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    #[expect(unsafe_code, reason = "some flags would be unsound with several threads")]
    // SAFETY: none of the flags above unshares descriptors or memory.
    unsafe {
        rustix::thread::unshare_unsafe(flags)
    }
}
