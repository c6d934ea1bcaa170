//! Memory and CPU time of processes, and memory and cores of the machine.

#[cfg(not(target_os = "macos"))]
#[path = "usage/linux.rs"]
mod system;
#[cfg(target_os = "macos")]
#[path = "usage/macos.rs"]
mod system;

use std::time::Duration;

pub use system::machine_memory;

/// The interval between reports of a stage's resource usage.
pub const USAGE: Duration = Duration::from_secs(1);

/// The peak resident memory of this process in bytes, if the system reports it.
pub fn peak_memory() -> Option<u64> {
    peak_memory_of(std::process::id())
}

/// The peak resident memory of another process in bytes, if the system reports it.
pub fn peak_memory_of(pid: u32) -> Option<u64> {
    system::peak_memory(pid)
}

/// The resident memory of a process and all its descendants, in bytes.
pub fn tree_memory(pid: u32) -> u64 {
    tree(pid, system::children).into_iter().filter_map(system::memory).sum()
}

/// The resident memory of all descendants of a process, in bytes.
pub fn family_memory(pid: u32) -> u64 {
    descendants(pid).into_iter().filter_map(system::memory).sum()
}

/// All descendants of a process.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    tree(pid, system::children).split_off(1)
}

/// The CPU time of a process and all its descendants in seconds, as far as the system reports it.
pub fn tree_cpu(pid: u32) -> f64 {
    tree(pid, system::children)
        .into_iter()
        .filter_map(system::cpu_seconds)
        .sum()
}

/// The cores on which threads of equal shares run: those of this process, and of a CPU with fast and slow
/// cores the fast ones. A slow core would hold up all threads at the end of each minibatch.
pub fn machine_cores() -> usize {
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    fast_cores(available, system::performance_cores())
}

fn fast_cores(available: usize, performance: Option<usize>) -> usize {
    performance
        .filter(|cores| *cores > 0)
        .map_or(available, |cores| cores.min(available))
}

/// A process and all its descendants, where `children` lists the children of one.
fn tree(pid: u32, children: impl Fn(u32) -> Vec<u32>) -> Vec<u32> {
    let (mut found, mut next) = (vec![pid], 0);
    // A process may exit during the traversal; the limit bounds the size of the tree.
    while next < found.len().min(1000) {
        found.extend(children(found[next]));
        next += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_all_descendants_once() {
        let children = |pid| match pid {
            1 => vec![2, 3],
            3 => vec![4],
            4 => vec![5, 6],
            _ => Vec::new(),
        };
        assert_eq!(tree(1, children), [1, 2, 3, 4, 5, 6]);
        assert_eq!(tree(2, children), [2]);
        // A listing that never ends.
        assert!(tree(1, |pid| vec![pid + 1]).len() <= 1001);
    }

    #[test]
    fn this_process_has_memory_time_and_children() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let own = std::process::id();
        let found = descendants(own);
        let (memory, family, peak) = (tree_memory(own), family_memory(own), peak_memory());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.contains(&child.id()), "{found:?}");
        assert!(memory > 1 << 20 && family > 0 && peak.unwrap() > 1 << 20);
        assert!(tree_cpu(own) >= 0.0 && machine_memory().unwrap() > 1 << 26);
    }

    #[test]
    fn threads_keep_to_fast_cores() {
        assert_eq!(fast_cores(10, Some(8)), 8, "an M1 Pro");
        assert_eq!(fast_cores(4, Some(8)), 4, "fewer are available to this process");
        assert_eq!(fast_cores(8, None), 8, "all cores are alike");
        assert_eq!(fast_cores(8, Some(0)), 8, "the system does not say");
    }
}
