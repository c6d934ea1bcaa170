//! The namespaces that a supervisor prepares.

use super::protocol::Surroundings;
use super::refused::refused;
use super::{privileges, tree};
use rustix::io::Errno;
use rustix::mount::MountPropagationFlags;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use std::fs;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

/// The namespaces of a supervisor and of all programs that it starts: for users, the host name, the network,
/// and mounts. In addition, each program has its own namespaces for processes, IPC and mounts.
///
/// The network and the host name keep no traces of a program that has ended: changing them takes
/// capabilities, which programs do not have, and sockets end with their processes.
pub(super) struct Namespaces {
    /// The mount namespace with the prepared tree, of which each program gets a copy.
    tree: OwnedFd,
}

impl Namespaces {
    /// Moves this process to new namespaces: a user namespace with the same user and group, one for the host
    /// name, one for mounts with the host's files, and (unless programs use the network) an empty network
    /// namespace. Prepares the tree of `surroundings` on the directory `place`. Programs started from here on
    /// gain no privileges by executing a file.
    pub(crate) fn enter(surroundings: &Surroundings, place: &Path) -> Result<Self, String> {
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        let mut flags = UnshareFlags::NEWUSER | UnshareFlags::NEWUTS | UnshareFlags::NEWNS;
        flags.set(UnshareFlags::NEWNET, !surroundings.network);
        unshare(flags).map_err(refused("create namespaces"))?;
        let map =
            |file: &str, text: String| fs::write(file, text).map_err(refused(format!("write `{file}`")));
        // An unprivileged process must first give up changing groups.
        map("/proc/self/setgroups", "deny".to_owned())?;
        map("/proc/self/uid_map", format!("{0} {0} 1", user.as_raw()))?;
        map("/proc/self/gid_map", format!("{0} {0} 1", group.as_raw()))?;
        rustix::system::sethostname(b"stage").map_err(refused("set the host's name"))?;
        privileges::forgo()?;
        // Later mounts of the host propagate here, but mounts made here do not propagate back.
        rustix::mount::mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)
            .map_err(refused("separate the mounts"))?;
        let host = mounts()?;
        unshare(UnshareFlags::NEWNS).map_err(refused("create a mount namespace"))?;
        let tree = mounts()?;
        tree::prepare(surroundings, place)?;
        enter_mounts(&host)?;
        Ok(Self { tree })
    }

    /// Moves this process to a mount namespace with a copy of the prepared tree.
    pub(crate) fn copy_tree(&self) -> Result<(), String> {
        enter_mounts(&self.tree)?;
        unshare(UnshareFlags::NEWNS).map_err(refused("create a mount namespace"))
    }
}

/// The mount namespace of this process.
fn mounts() -> Result<OwnedFd, String> {
    const FILE: &str = "/proc/self/ns/mnt";
    let opened = fs::File::open(FILE).map_err(refused(format!("open `{FILE}`")));
    opened.map(OwnedFd::from)
}

fn enter_mounts(namespace: &OwnedFd) -> Result<(), String> {
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Mount))
        .map_err(refused("enter a mount namespace"))
}

fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    #[expect(unsafe_code, reason = "some flags would be unsound with several threads")]
    // SAFETY: none of the flags above unshares descriptors or memory.
    unsafe {
        rustix::thread::unshare_unsafe(flags)
    }
}
