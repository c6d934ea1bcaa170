//! The files that an isolated program sees.
//!
//! | path | content | writable |
//! | --- | --- | --- |
//! | `/usr`, `/bin`, `/sbin`, `/lib*`, `/etc`, `/nix/store`, `/gnu/store` | the system's own, as far as they exist | no |
//! | the `visible` files and directories of tools | at their own paths | no |
//! | `/stage/needs`, `/stage/tools` | inputs; links to tools | no |
//! | `/stage` otherwise, `/tmp` | directories of the stage, removed after it | yes |
//! | `/dev` | `null`, `zero`, `full`, `random`, `urandom`, a private `shm` | devices and `shm` |
//! | `/proc` | the processes of the sandbox | |

use super::namespaces::Refused;
use super::protocol::Surroundings;
use super::system::{add_flags_of_detached, add_mount_flags};
use super::visible::SYSTEM;
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags};
use std::ffi::CString;
use std::fs;
use std::io::ErrorKind;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

/// `MOUNT_ATTR_RDONLY`, `MOUNT_ATTR_NOSUID` and `MOUNT_ATTR_NODEV` of `mount_setattr(2)`.
const READ_ONLY: u64 = 1;
const HARMLESS: u64 = 2 | 4;

/// Mounts the tree of these surroundings on the directory `place`, as far as it is the same for all programs, and makes it the root of this process and of
/// its mount namespace, which is its own.
pub(super) fn prepare(surroundings: &Surroundings, place: &Path) -> Result<(), Refused> {
    rustix::mount::mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(Refused::at("make the mounts private"))?;
    tmpfs(place, c"mode=755")?;
    rustix::process::chdir(place).map_err(Refused::at("enter the new root"))?;
    for path in SYSTEM.map(Path::new) {
        show(path)?;
    }
    if surroundings.network {
        // The resolver's configuration often is a link to a file that a service writes.
        let resolver = fs::canonicalize("/etc/resolv.conf").ok();
        resolver
            .filter(|path| !is_shown(path))
            .as_deref()
            .map_or(Ok(()), show)?;
    }
    for name in ["stage", "tmp"] {
        make_dir(Path::new(name))?;
    }
    devices()?;
    // The system lets a program's own be mounted only where one is mounted already; where it does not, as in containers that hide a part of theirs,
    // this one has to do: programs need `/proc/self`.
    make_dir(Path::new("proc"))?;
    bind(Path::new("/proc"), Path::new("proc"), HARMLESS | READ_ONLY)?;
    let mut visible = surroundings.visible.clone();
    // A directory comes before what is below it.
    visible.sort();
    let mut shown: Vec<PathBuf> = Vec::new();
    for path in visible {
        if !is_shown(&path) && !shown.iter().any(|above| path.starts_with(above)) {
            show(&path)?;
            shown.push(path);
        }
    }
    add_mount_flags(c".", READ_ONLY | HARMLESS, false).map_err(Refused::at("make the root read-only"))?;
    rustix::process::pivot_root(".", ".").map_err(Refused::at("change the root"))?;
    rustix::mount::unmount(".", UnmountFlags::DETACH).map_err(Refused::at("unmount the old root"))?;
    rustix::process::chdir("/").map_err(Refused::at("enter the root"))
}

/// The stage's directory, for [`complete`]: a mount that is attached nowhere yet.
pub(super) fn stage(path: &Path) -> Result<OwnedFd, Refused> {
    let what = || format!("mount `{}`", path.display());
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let mount = rustix::mount::open_tree(rustix::fs::CWD, path, flags).map_err(Refused::at(what()))?;
    add_flags_of_detached(mount.as_fd(), HARMLESS).map_err(Refused::at(what()))?;
    Ok(mount)
}

/// Mounts what is a program's own, in a copy of the prepared tree.
pub(super) fn complete(stage: BorrowedFd<'_>) -> Result<(), Refused> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    rustix::mount::move_mount(stage, "", rustix::fs::CWD, "/stage", flags).map_err(Refused::at("mount `/stage`"))?;
    for path in ["/stage/needs", "/stage/tools"].map(Path::new) {
        if path.is_dir() {
            bind(path, path, HARMLESS | READ_ONLY)?;
        }
    }
    bind(Path::new("/stage/tmp"), Path::new("/tmp"), HARMLESS)?;
    tmpfs(Path::new("/dev/shm"), c"mode=1777")?;
    processes()
}

/// True for paths below the system's own directories.
fn is_shown(path: &Path) -> bool {
    SYSTEM
        .iter()
        .any(|system| path.starts_with(system) && !Path::new(system).is_symlink())
}

/// The path below the new root, which is the working directory.
fn inside(path: &Path) -> PathBuf {
    path.strip_prefix("/").unwrap_or(path).to_owned()
}

/// Shows a file or directory of the host at its own path, read-only; a link as a link. Nothing if there is none.
fn show(path: &Path) -> Result<(), Refused> {
    let to = inside(path);
    let what = || format!("show `{}`", path.display());
    let meta = match fs::symlink_metadata(path) {
        Err(err) if err.kind() == ErrorKind::NotFound => return Ok(()),
        meta => meta.map_err(Refused::io(what()))?,
    };
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).map_err(Refused::io(what()))?;
    }
    if meta.is_symlink() {
        let target = fs::read_link(path).map_err(Refused::io(what()))?;
        return match symlink(target, &to) {
            Err(err) if err.kind() == ErrorKind::AlreadyExists => Ok(()),
            made => made.map_err(Refused::io(what())),
        };
    }
    if meta.is_dir() {
        make_dir(&to)?;
    } else {
        make_file(&to)?;
    }
    bind(path, &to, HARMLESS | READ_ONLY)
}

fn make_dir(path: &Path) -> Result<(), Refused> {
    match fs::create_dir(path) {
        Err(err) if err.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made.map_err(Refused::io(format!("create `/{}`", path.display()))),
    }
}

fn make_file(path: &Path) -> Result<(), Refused> {
    let made = fs::File::create(path).map(|_| ());
    made.map_err(Refused::io(format!("create `/{}`", path.display())))
}

/// Binds a file or directory, with all that is mounted below it, and adds flags to all of it.
fn bind(from: &Path, to: &Path, flags: u64) -> Result<(), Refused> {
    let what = || format!("mount `{}`", from.display());
    rustix::mount::mount_bind_recursive(from, to).map_err(Refused::at(what()))?;
    let to = CString::new(to.as_os_str().as_bytes()).map_err(|_| Refused {
        step: what(),
        error: Errno::INVAL,
    })?;
    add_mount_flags(&to, flags, true).map_err(Refused::at(format!("set the flags of `{}`", from.display())))
}

fn tmpfs(path: &Path, options: &std::ffi::CStr) -> Result<(), Refused> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount("tmpfs", path, "tmpfs", flags, options)
        .map_err(Refused::at(format!("mount a tmpfs on `{}`", path.display())))
}

fn devices() -> Result<(), Refused> {
    make_dir(Path::new("dev"))?;
    for name in DEVICES {
        let (from, to) = (Path::new("/dev").join(name), Path::new("dev").join(name));
        if from.exists() {
            make_file(&to)?;
            rustix::mount::mount_bind(&from, &to).map_err(Refused::at(format!("mount `{}`", from.display())))?;
        }
    }
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ] {
        symlink(target, Path::new("dev").join(name)).map_err(Refused::io(format!("create `/dev/{name}`")))?;
    }
    make_dir(Path::new("dev/shm"))
}

/// Mounts the processes of this PID namespace, unless the system refuses that.
fn processes() -> Result<(), Refused> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    if rustix::mount::mount("proc", "/proc", "proc", flags, None).is_ok() && rustix::process::geteuid().is_root() {
        // Their files are root's, who needs no capability to write to them.
        for path in ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"].map(Path::new) {
            if path.exists() {
                bind(path, path, HARMLESS | READ_ONLY)?;
            }
        }
    }
    Ok(())
}
