//! Memory and CPU time of processes, and memory of the machine.

use std::fs;
use std::time::Duration;

/// The interval between reports of a stage's resource usage.
pub const USAGE: Duration = Duration::from_secs(1);

/// The peak resident memory of this process in bytes, if the system reports it.
pub fn peak_memory() -> Option<u64> {
    status_field("self", "VmHWM:")
}

/// The peak resident memory of another process in bytes, if the system reports it.
pub fn peak_memory_of(pid: u32) -> Option<u64> {
    status_field(&pid.to_string(), "VmHWM:")
}

/// The resident memory of a process and all its descendants, in bytes.
pub fn tree_memory(pid: u32) -> u64 {
    memory(tree(pid))
}

/// The resident memory of all descendants of a process, in bytes.
pub fn family_memory(pid: u32) -> u64 {
    memory(descendants(pid))
}

fn memory(pids: Vec<u32>) -> u64 {
    let memory = pids.into_iter().map(|pid| status_field(&pid.to_string(), "VmRSS:"));
    memory.map(Option::unwrap_or_default).sum()
}

/// All descendants of a process.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    tree(pid).split_off(1)
}

/// The CPU time of a process and all its descendants in seconds, as far as the system reports it.
pub fn tree_cpu(pid: u32) -> f64 {
    tree(pid).into_iter().filter_map(cpu_seconds).sum()
}

/// A process and all its descendants.
fn tree(pid: u32) -> Vec<u32> {
    let (mut found, mut next) = (vec![pid], 0);
    // A process may exit during the traversal; the limit bounds the size of the tree.
    while next < found.len().min(1000) {
        let tasks = fs::read_dir(format!("/proc/{}/task", found[next]));
        for task in tasks.into_iter().flatten().flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
        next += 1;
    }
    found
}

/// The CPU time of a process, including that of its reaped children, in seconds: `proc_pid_stat(5)`, fields
/// 14 to 17, in ticks of a hundredth of a second.
fn cpu_seconds(pid: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses, and may contain any character.
    let (_, rest) = stat.rsplit_once(')')?;
    let ticks = rest.split_whitespace().skip(11).take(4);
    Some(ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0)
}

fn status_field(pid: &str, name: &str) -> Option<u64> {
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
