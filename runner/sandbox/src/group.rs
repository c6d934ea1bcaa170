//! Control groups (version 2): the limits of a family's memory and processes.
//!
//! A supervisor has one group, in which its programs run one after the other. The group is below a group that
//! is delegated to this user: the user may create groups in it, and it passes its controllers on to them.

use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The maximum number of processes and threads of a family: more than a multi-threaded program has on a large
/// machine, but less than the system's limit.
pub(super) const PROCESSES: u64 = 16 << 10;

/// The hint if there is no delegated group.
const REMEDY: &str = "`systemd-run --user --scope runner …` starts it in one";

/// The nearest ancestor of this process's group in which groups with limits can be created.
pub(super) fn parent() -> Result<PathBuf, String> {
    let mounts =
        fs::read_to_string("/proc/self/mountinfo").map_err(|err| format!("cannot read mounts: {err}"))?;
    let groups = fs::read_to_string("/proc/self/cgroup")
        .map_err(|err| format!("cannot read control groups: {err}"))?;
    let (top, own) = own_group(&mounts, &groups).ok_or("no control groups of version 2 are mounted")?;
    let above = own.ancestors().take_while(|dir| dir.starts_with(&top));
    let mut refused = None;
    for dir in above.filter(|dir| hands_on(dir)) {
        let attempt = dir.join(format!("runner-{}-probe", std::process::id()));
        match fs::create_dir(&attempt).and_then(|()| fs::remove_dir(&attempt)) {
            Ok(()) => return Ok(dir.to_owned()),
            Err(err) => {
                refused = Some(format!("cannot create a control group in `{}`: {err}", dir.display()))
            }
        }
    }
    let reason = refused.unwrap_or_else(|| {
        format!(
            "no control group above `{}` hands on the memory and pids controllers",
            own.display()
        )
    });
    Err(format!("{reason}; {REMEDY}"))
}

/// The mount point of control groups, and the directory of this process's own group.
fn own_group(mounts: &str, groups: &str) -> Option<(PathBuf, PathBuf)> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let below = Path::new(own).strip_prefix(root).ok()?;
        file_system
            .starts_with("cgroup2 ")
            .then(|| (PathBuf::from(point), Path::new(point).join(below)))
    })
}

/// True if groups below the group `dir` can limit memory and processes.
fn hands_on(dir: &Path) -> bool {
    let controllers = fs::read_to_string(dir.join("cgroup.subtree_control")).unwrap_or_default();
    let has = |name: &str| controllers.split_whitespace().any(|known| known == name);
    has("memory") && has("pids")
}

/// A control group. Dropping it removes the group, whose processes must have ended.
pub(super) struct Group {
    path: PathBuf,
    dir: OwnedFd,
    limit: Option<u64>,
    /// The number of processes killed for memory before the current program started.
    killed: u64,
}

impl Group {
    /// Creates a control group for this process below `parent`.
    pub(crate) fn new(parent: &Path) -> Result<Self, String> {
        let path = parent.join(format!("runner-{}", std::process::id()));
        let failed = |err: io::Error| format!("create the control group `{}`: {err}", path.display());
        fs::create_dir(&path).map_err(failed)?;
        let group = File::open(&path).map(|dir| Self {
            path: path.clone(),
            dir: dir.into(),
            limit: None,
            killed: 0,
        });
        let group = group.map_err(failed)?;
        group.set("pids.max", &PROCESSES.to_string())?;
        // If one process exceeds the limit, its whole family is killed.
        group.set("memory.oom.group", "1")?;
        Ok(group)
    }

    fn set(&self, name: &str, value: &str) -> Result<(), String> {
        let file = self.path.join(name);
        fs::write(&file, value).map_err(|err| format!("write `{}`: {err}", file.display()))
    }

    /// Prepares the group for a program with the memory limit `memory`, in bytes.
    pub(crate) fn begin(&mut self, memory: Option<u64>) -> Result<(), String> {
        if self.limit != memory {
            self.set(
                "memory.max",
                &memory.map_or("max".to_owned(), |bytes| bytes.to_string()),
            )?;
            // A system without swap has no such file.
            let _ = self.set("memory.swap.max", if memory.is_some() { "0" } else { "max" });
            self.limit = memory;
        }
        self.killed = self.killed_for_memory();
        Ok(())
    }

    /// True if a process was killed for memory since [`begin`](Self::begin).
    pub(crate) fn was_out_of_memory(&self) -> bool {
        self.killed_for_memory() > self.killed
    }

    fn killed_for_memory(&self) -> u64 {
        let events = fs::read_to_string(self.path.join("memory.events")).unwrap_or_default();
        let count = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    }

    /// A descriptor of the group's directory.
    pub(crate) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// The file through which a process enters the group.
    pub(crate) fn entrance(&self) -> PathBuf {
        self.path.join("cgroup.procs")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A killed process may take a moment to leave the group.
        for _ in 0..50 {
            match fs::remove_dir(&self.path) {
                Err(err) if err.kind() == io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(Duration::from_millis(2))
                }
                _ => break,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_found_below_its_mount() {
        let mounts = "\
22 1 0:20 / /proc rw - proc proc rw
30 22 0:26 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate
";
        let found = own_group(mounts, "4:memory:/a\n0::/user.slice/x.scope\n").unwrap();
        assert_eq!(found.0, Path::new("/sys/fs/cgroup/unified"));
        assert_eq!(found.1, Path::new("/sys/fs/cgroup/unified/user.slice/x.scope"));
        let below = mounts.replace(" / /sys/fs", " /user.slice /sys/fs");
        let found = own_group(&below, "0::/user.slice/x.scope\n").unwrap();
        assert_eq!(found.1, Path::new("/sys/fs/cgroup/unified/x.scope"));
        assert_eq!(own_group(mounts, "4:memory:/a\n"), None);
        assert_eq!(own_group("", "0::/\n"), None);
    }
}
