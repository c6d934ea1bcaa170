//! The figures of Linux, from `/proc`.

use std::fs;
use std::path::{Path, PathBuf};

/// The peak resident memory of a process in bytes.
pub(super) fn peak_memory(pid: u32) -> Option<u64> {
    status_field(pid, "VmHWM:")
}

/// The resident memory of a process in bytes.
pub(super) fn memory(pid: u32) -> Option<u64> {
    status_field(pid, "VmRSS:")
}

/// The children of all threads of a process.
pub(super) fn children(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    for task in tasks.into_iter().flatten().flatten() {
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        found.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    found
}

/// The CPU time of a process, including that of its reaped children, in seconds: `proc_pid_stat(5)`, fields
/// 14 to 17, in ticks of a hundredth of a second.
pub(super) fn cpu_seconds(pid: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses, and may contain any character.
    let (_, rest) = stat.rsplit_once(')')?;
    let ticks = rest.split_whitespace().skip(11).take(4);
    Some(ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0)
}

fn status_field(pid: u32, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// The memory available to this process in bytes: that of the machine, or the lowest limit of its control
/// group and of those above it.
pub fn machine_memory() -> Option<u64> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let total = line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1024;
    let own = |name: &str| fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
    let files = memory_limits(&own("mountinfo"), &own("cgroup")).into_iter();
    // Without a limit, a file has the word `max` or, in version 1, more than any machine has.
    let limits = files.filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok());
    Some(limits.fold(total, u64::min))
}

/// The files with the limits of this process's control group and of those above it (version 2 and 1), from
/// `/proc/self/mountinfo` and `/proc/self/cgroup`: `cgroups(7)`.
fn memory_limits(mounts: &str, groups: &str) -> Vec<PathBuf> {
    let is_memory = |list: &str| list.split(',').any(|word| word == "memory");
    let mut files = Vec::new();
    for (mount, file_system) in mounts.lines().filter_map(|line| line.split_once(" - ")) {
        let mut fields = mount.split(' ').skip(3);
        let (Some(root), Some(point)) = (fields.next(), fields.next().map(Path::new)) else {
            continue;
        };
        let options = file_system.rsplit(' ').next().unwrap_or_default();
        let (version, file) = match file_system.split(' ').next() {
            Some("cgroup2") => (2, "memory.max"),
            Some("cgroup") if is_memory(options) => (1, "memory.limit_in_bytes"),
            _ => continue,
        };
        let own = groups.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            let is_own = if version == 2 {
                controllers.is_empty()
            } else {
                is_memory(controllers)
            };
            is_own.then_some(Path::new(path))
        });
        // A container may see the host's path of its group, and has the group itself mounted.
        let below = own.and_then(|own| own.strip_prefix(root).ok()).unwrap_or(Path::new(""));
        let group = point.join(below);
        let above = group.ancestors().take_while(|dir| dir.starts_with(point));
        files.extend(above.map(|dir| dir.join(file)));
    }
    files
}

/// The number of fast cores of a processor that has slow ones, too; not known here.
pub(super) fn performance_cores() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_all_groups_above_are_read() {
        let unified = "30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
        let scope = [
            "/sys/fs/cgroup/user.slice/x.scope",
            "/sys/fs/cgroup/user.slice",
            "/sys/fs/cgroup",
        ];
        let files = |dirs: &[&str], name: &str| -> Vec<PathBuf> {
            dirs.iter().map(|dir| Path::new(dir).join(name)).collect()
        };
        assert_eq!(
            memory_limits(unified, "0::/user.slice/x.scope\n"),
            files(&scope, "memory.max")
        );
        // In a container with a namespace of control groups.
        assert_eq!(memory_limits(unified, "0::/\n"), files(&scope[2..], "memory.max"));
        let former = "\
33 30 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct
36 30 0:33 /docker/7f /sys/fs/cgroup/memory ro,nosuid master:15 - cgroup cgroup rw,memory
";
        let limit = "memory.limit_in_bytes";
        let groups = "5:cpu,cpuacct:/docker/7f\n4:memory:/docker/7f/below\n0::/system.slice\n";
        assert_eq!(
            memory_limits(former, groups),
            files(&["/sys/fs/cgroup/memory/below", "/sys/fs/cgroup/memory"], limit)
        );
        // The path is the host's.
        assert_eq!(
            memory_limits(former, "4:memory:/elsewhere\n"),
            files(&["/sys/fs/cgroup/memory"], limit)
        );
        assert!(memory_limits("22 1 0:20 / /proc rw - proc proc rw\n", "").is_empty());
    }
}
