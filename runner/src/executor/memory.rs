//! Memory of processes and of the machine.

use std::fs;

/// The peak resident memory of this process in bytes, where the system tells.
pub fn peak_memory() -> Option<u64> {
    status_field("self", "VmHWM:")
}

/// The resident memory of a process and all that descend from it.
pub(crate) fn tree_memory(pid: u32) -> u64 {
    let mut total = 0;
    let mut waiting = vec![pid];
    // A process may end while it is looked at, and no tree is this large.
    for _ in 0..1000 {
        let Some(pid) = waiting.pop() else { break };
        total += status_field(&pid.to_string(), "VmRSS:").unwrap_or(0);
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
            continue;
        };
        for task in tasks.flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            waiting.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
    }
    total
}

fn status_field(pid: &str, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// The memory that this process may use in bytes: that of the machine, or of its control group where that is less.
pub fn machine_memory() -> Option<u64> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let total = line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1024;
    let group = fs::read_to_string("/sys/fs/cgroup/memory.max")
        .ok()
        .and_then(|text| text.trim().parse::<u64>().ok());
    Some(group.map_or(total, |group| group.min(total)))
}
