//! The figures of Linux, from `/proc`.

use std::fs;

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

/// The memory available to this process in bytes: that of the machine, or of its control group if that is
/// less.
pub fn machine_memory() -> Option<u64> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let total = line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1024;
    let group = fs::read_to_string("/sys/fs/cgroup/memory.max")
        .ok()
        .and_then(|text| text.trim().parse::<u64>().ok());
    Some(group.map_or(total, |group| group.min(total)))
}

/// The number of fast cores of a processor that has slow ones, too; not known here.
pub(super) fn performance_cores() -> Option<usize> {
    None
}
