//! The files that an isolated program sees.
//!
//! | path | content | writable |
//! | --- | --- | --- |
//! | `/usr`, `/bin`, `/sbin`, `/lib*`, `/etc`, `/nix/store`, `/gnu/store` | the system's own, as far as they exist | no |
//! | the `visible` files and directories of tools | at their own paths | no |
//! | `/stage/needs`, `/stage/tools` | inputs; links to tools | no |
//! | `/stage` otherwise, `/tmp` | directories of the stage, emptied after it | yes |
//! | `/dev` | `null`, `zero`, `full`, `random`, `urandom`, a private `shm` | devices and `shm` |
//! | `/proc` | the processes of the sandbox | |

use super::protocol::{Spec, Surroundings};
use super::refused::refused;
use super::system::{add_flags_of_detached, add_mount_flags};
use super::visible::SYSTEM;
use rustix::mount::{MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags};
use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;
use std::io::ErrorKind;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

/// `MOUNT_ATTR_RDONLY`, `MOUNT_ATTR_NOSUID` and `MOUNT_ATTR_NODEV` of `mount_setattr(2)`.
const READ_ONLY: u64 = 1;
const HARMLESS: u64 = 2 | 4;

/// Mounts the tree of these surroundings on the directory `place`, as far as the tree is the same for all
/// programs, and makes it the root of this process and of this process's mount namespace.
pub(super) fn prepare(surroundings: &Surroundings, place: &Path) -> Result<(), String> {
    rustix::mount::mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(refused("make the mounts private"))?;
    tmpfs(place, c"mode=755")?;
    rustix::process::chdir(place).map_err(refused("enter the new root"))?;
    for path in SYSTEM.map(Path::new) {
        show(path)?;
    }
    if surroundings.network {
        // The resolver's configuration is often a link to a file that a service writes.
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
    // The system lets a program mount its own `/proc` only where one is mounted already. Where it refuses
    // that, as in containers that hide a part of theirs, this `/proc` remains: programs need `/proc/self`.
    make_dir(Path::new("proc"))?;
    bind(Path::new("/proc"), Path::new("proc"), HARMLESS | READ_ONLY)?;
    for path in shown(surroundings).filter(|path| !is_below_own(path)) {
        show(path)?;
    }
    add_mount_flags(c".", READ_ONLY | HARMLESS, false).map_err(refused("make the root read-only"))?;
    rustix::process::pivot_root(".", ".").map_err(refused("change the root"))?;
    rustix::mount::unmount(".", UnmountFlags::DETACH).map_err(refused("unmount the old root"))?;
    rustix::process::chdir("/").map_err(refused("enter the root"))
}

/// The mounts of a single program, for [`complete`]; they are not attached yet.
pub(super) struct Own {
    /// The stage's directory.
    stage: OwnedFd,
    /// The visible paths below directories of the program's own, which cover the prepared tree; links have no
    /// mount.
    visible: Vec<(PathBuf, Kind, Option<OwnedFd>)>,
}

/// The kind of a visible path; a link has its target.
enum Kind {
    Link(PathBuf),
    Dir,
    File,
}

impl Kind {
    /// The kind of a path of the host; `None` if the path does not exist.
    fn of(path: &Path) -> Result<Option<Self>, String> {
        let what = || format!("show `{}`", path.display());
        let meta = match fs::symlink_metadata(path) {
            Err(err) if err.kind() == ErrorKind::NotFound => return Ok(None),
            meta => meta.map_err(refused(what()))?,
        };
        Ok(Some(match meta.is_dir() {
            true => Self::Dir,
            false if meta.is_symlink() => Self::Link(fs::read_link(path).map_err(refused(what()))?),
            false => Self::File,
        }))
    }

    /// Creates the link, or the directory or file to mount on, with its parent directories.
    fn make(&self, path: &Path) -> Result<(), String> {
        let what = || format!("show `{}`", path.display());
        path.parent()
            .map_or(Ok(()), fs::create_dir_all)
            .map_err(refused(what()))?;
        match self {
            Self::Link(target) => match symlink(target, path) {
                Err(err) if err.kind() == ErrorKind::AlreadyExists => Ok(()),
                made => made.map_err(refused(what())),
            },
            Self::Dir => make_dir(path),
            Self::File => make_file(path),
        }
    }
}

impl Own {
    /// Creates the mounts of the program of `spec`.
    pub(crate) fn of(spec: &Spec) -> Result<Self, String> {
        let stage = detached(&spec.stage, false, HARMLESS)?;
        let mut visible = Vec::new();
        for path in shown(&spec.surroundings).filter(|path| is_below_own(path)) {
            let Some(kind) = Kind::of(path)? else { continue };
            let mount = match kind {
                Kind::Link(_) => None,
                Kind::Dir | Kind::File => Some(detached(path, true, HARMLESS | READ_ONLY)?),
            };
            visible.push((path.clone(), kind, mount));
        }
        Ok(Self { stage, visible })
    }
}

/// Creates a detached mount of a file or directory; with everything mounted below it if `recursive`.
fn detached(path: &Path, recursive: bool, flags: u64) -> Result<OwnedFd, String> {
    let what = || format!("mount `{}`", path.display());
    let mut how = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    how.set(OpenTreeFlags::AT_RECURSIVE, recursive);
    let mount = rustix::mount::open_tree(rustix::fs::CWD, path, how).map_err(refused(what()))?;
    add_flags_of_detached(mount.as_fd(), flags, recursive).map_err(refused(what()))?;
    Ok(mount)
}

fn attach(mount: &OwnedFd, path: &Path) -> Result<(), String> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    rustix::mount::move_mount(mount, "", rustix::fs::CWD, path, flags)
        .map_err(refused(format!("mount `{}`", path.display())))
}

/// Mounts the directories of a program's own in a copy of the prepared tree.
pub(super) fn complete(own: &Own) -> Result<(), String> {
    attach(&own.stage, Path::new("/stage"))?;
    for path in ["/stage/needs", "/stage/tools"].map(Path::new) {
        if path.is_dir() {
            bind(path, path, HARMLESS | READ_ONLY)?;
        }
    }
    bind(Path::new("/stage/tmp"), Path::new("/tmp"), HARMLESS)?;
    tmpfs(Path::new("/dev/shm"), c"mode=1777")?;
    for (path, kind, mount) in &own.visible {
        kind.make(path)?;
        mount.as_ref().map_or(Ok(()), |mount| attach(mount, path))?;
    }
    processes()
}

/// The visible files and directories that are not below another visible path or a directory of the system.
fn shown(surroundings: &Surroundings) -> impl Iterator<Item = &PathBuf> {
    let visible = &surroundings.visible;
    let is_below = move |path: &PathBuf| visible.iter().any(|above| path != above && path.starts_with(above));
    let outermost: BTreeSet<&PathBuf> = visible.iter().filter(|path| !is_below(path)).collect();
    outermost.into_iter().filter(|path| !is_shown(path))
}

/// True if a path is below the directories of a program's own.
fn is_below_own(path: &Path) -> bool {
    ["/stage", "/tmp", "/dev/shm"].iter().any(|own| path.starts_with(own))
}

/// True if a path is below the system's own directories.
fn is_shown(path: &Path) -> bool {
    SYSTEM
        .iter()
        .any(|system| path.starts_with(system) && !Path::new(system).is_symlink())
}

/// The path below the new root, which is the working directory.
fn inside(path: &Path) -> PathBuf {
    path.strip_prefix("/").unwrap_or(path).to_owned()
}

/// Shows a file or directory of the host at its own path, read-only; a link is shown as a link. Does nothing
/// if the path does not exist.
fn show(path: &Path) -> Result<(), String> {
    let to = inside(path);
    let Some(kind) = Kind::of(path)? else {
        return Ok(());
    };
    kind.make(&to)?;
    match kind {
        Kind::Link(_) => Ok(()),
        Kind::Dir | Kind::File => bind(path, &to, HARMLESS | READ_ONLY),
    }
}

fn make_dir(path: &Path) -> Result<(), String> {
    match fs::create_dir(path) {
        Err(err) if err.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made.map_err(refused(format!("create `/{}`", path.display()))),
    }
}

fn make_file(path: &Path) -> Result<(), String> {
    let made = fs::File::create(path).map(|_| ());
    made.map_err(refused(format!("create `/{}`", path.display())))
}

/// Binds a file or directory, with everything mounted below it, and adds flags to all of these mounts.
fn bind(from: &Path, to: &Path, flags: u64) -> Result<(), String> {
    let what = || format!("mount `{}`", from.display());
    rustix::mount::mount_bind_recursive(from, to).map_err(refused(what()))?;
    let to = CString::new(to.as_os_str().as_bytes()).map_err(refused(what()))?;
    add_mount_flags(&to, flags, true).map_err(refused(format!("set the flags of `{}`", from.display())))
}

fn tmpfs(path: &Path, options: &std::ffi::CStr) -> Result<(), String> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount("tmpfs", path, "tmpfs", flags, options)
        .map_err(refused(format!("mount a tmpfs on `{}`", path.display())))
}

fn devices() -> Result<(), String> {
    make_dir(Path::new("dev"))?;
    for name in DEVICES {
        let (from, to) = (Path::new("/dev").join(name), Path::new("dev").join(name));
        if from.exists() {
            make_file(&to)?;
            rustix::mount::mount_bind(&from, &to).map_err(refused(format!("mount `{}`", from.display())))?;
        }
    }
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ] {
        symlink(target, Path::new("dev").join(name)).map_err(refused(format!("create `/dev/{name}`")))?;
    }
    make_dir(Path::new("dev/shm"))
}

/// Mounts the processes of this PID namespace, unless the system refuses that.
fn processes() -> Result<(), String> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    if rustix::mount::mount("proc", "/proc", "proc", flags, None).is_ok()
        && rustix::process::geteuid().is_root()
    {
        // These files belong to root, who needs no capability to write to them.
        for path in ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"].map(Path::new) {
            if path.exists() {
                bind(path, path, HARMLESS | READ_ONLY)?;
            }
        }
    }
    Ok(())
}
