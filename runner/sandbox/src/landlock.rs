//! Landlock: the limits of a program where the system has no namespaces for it.
//!
//! | path | access |
//! | --- | --- |
//! | the system's own files, the `visible` files of tools, `needs` and `tools` of the stage | reading, executing |
//! | `work`, `home` and `tmp` of the stage, `/dev/shm` | all |
//! | `/dev/null`, `zero`, `full`, `random`, `urandom` | reading, writing |
//! | `/proc` | reading |
//! | everything else | none |
//!
//! Landlock limits the opening of files: their names and metadata stay visible, as do other processes. TCP is
//! refused from version 4 on, abstract sockets and signals to other processes from version 6 on; UDP is never
//! refused.

use super::protocol::Spec;
use super::system::check;
use super::visible::SYSTEM;
use rustix::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// `LANDLOCK_ACCESS_FS_…` of `landlock(7)`.
const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;

/// The accesses that apply to files; the others apply to directories.
const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;

/// The first version that refuses TCP.
const NETWORK: u32 = 4;

/// The system's version of Landlock.
pub(super) fn version() -> Result<u32, String> {
    /// `LANDLOCK_CREATE_RULESET_VERSION`.
    const VERSION: u32 = 1;
    #[expect(unsafe_code, reason = "no library has this system call")]
    // SAFETY: with this flag it takes no structure.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u64>(),
            0_usize,
            VERSION,
        )
    };
    let version = check(version).map_err(|err| format!("Landlock: {err}"))?;
    u32::try_from(version).map_err(|_| "Landlock has no version".to_owned())
}

/// All file accesses that a version of Landlock knows.
fn all(version: u32) -> u64 {
    let count = match version {
        0 | 1 => 13,
        2 => 14,
        3 | 4 => 15,
        _ => 16,
    };
    (1 << count) - 1
}

/// The structure `struct landlock_ruleset_attr`; older versions read only its beginning.
#[repr(C)]
struct Handled {
    files: u64,
    network: u64,
    scoped: u64,
}

/// The structure `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct Beneath {
    allowed: u64,
    parent: i32,
}

/// The rules of a program, ready to be applied by [`restrict`].
pub(super) fn rules(spec: &Spec) -> Result<OwnedFd, String> {
    let version = version()?;
    let all = all(version);
    let handled = Handled {
        files: all,
        network: if version >= NETWORK && !spec.surroundings.network {
            3
        } else {
            0
        },
        scoped: if version >= 6 { 3 } else { 0 },
    };
    let size = match version {
        ..NETWORK => 8,
        NETWORK | 5 => 16,
        _ => size_of::<Handled>(),
    };
    #[expect(unsafe_code, reason = "no library has this system call")]
    // SAFETY: the structure has at least the stated size and outlives the call.
    let rules = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, &raw const handled, size, 0_u32) };
    let rules = check(rules).map_err(|err| format!("create rules of Landlock: {err}"))?;
    #[expect(unsafe_code, reason = "the system call returns a number")]
    // SAFETY: the descriptor is new and owned by nothing else.
    let rules = unsafe { OwnedFd::from_raw_fd(rules as i32) };
    let read = READ_FILE | READ_DIR | EXECUTE;
    let at = |name: &str| spec.stage.join(name);
    let mut allowed: Vec<(PathBuf, u64)> = SYSTEM.iter().map(|path| (PathBuf::from(path), read)).collect();
    allowed.extend(spec.surroundings.visible.iter().map(|path| (path.clone(), read)));
    allowed.extend(["needs", "tools"].map(|name| (at(name), read)));
    allowed.extend(["work", "home", "tmp"].map(|name| (at(name), all)));
    allowed.push(("/dev/shm".into(), all));
    allowed.push(("/proc".into(), READ_FILE | READ_DIR));
    let devices = ["null", "zero", "full", "random", "urandom"];
    allowed.extend(devices.map(|name| (Path::new("/dev").join(name), OF_FILES & !EXECUTE)));
    if spec.surroundings.network {
        // The resolver's configuration often is a link to a file that a service writes.
        allowed.extend(
            std::fs::canonicalize("/etc/resolv.conf")
                .ok()
                .map(|path| (path, READ_FILE)),
        );
    }
    for (path, access) in allowed {
        allow(&rules, &path, access & all)?;
    }
    Ok(rules)
}

/// Adds a rule for a path and everything below it; no rule if the path does not exist.
fn allow(rules: &OwnedFd, path: &Path, access: u64) -> Result<(), String> {
    let what = |err: Errno| format!("allow `{}` by Landlock: {err}", path.display());
    let opened = match rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
        opened => opened.map_err(what)?,
    };
    let stat = rustix::fs::fstat(&opened).map_err(what)?;
    let is_dir = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir();
    let beneath = Beneath {
        allowed: if is_dir { access } else { access & OF_FILES },
        parent: opened.as_raw_fd(),
    };
    /// `LANDLOCK_RULE_PATH_BENEATH`.
    const PATH_BENEATH: u32 = 1;
    #[expect(unsafe_code, reason = "no library has this system call")]
    // SAFETY: the structure is that of the rule, and outlives the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            rules.as_raw_fd(),
            PATH_BENEATH,
            &raw const beneath,
            0_u32,
        )
    };
    check(result).map(|_| ()).map_err(what)
}

/// Applies rules to this process and all that it starts; none of them can gain privileges by executing a
/// file.
pub(super) fn restrict(rules: &OwnedFd) -> Result<(), String> {
    let what = |err: Errno| format!("apply the rules of Landlock: {err}");
    rustix::thread::set_no_new_privs(true).map_err(what)?;
    #[expect(unsafe_code, reason = "no library has this system call")]
    // SAFETY: it takes numbers only.
    let result = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0_u32) };
    check(result).map(|_| ()).map_err(what)
}
