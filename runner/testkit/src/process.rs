//! Processes that a test started, identified by a mark in their environment.

use std::time::Duration;

/// The command lines of the processes whose environment contains `mark`.
pub fn marked(mark: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let path = entry.path();
        let is_process = entry.file_name().to_string_lossy().chars().all(|c| c.is_ascii_digit());
        let environ = std::fs::read(path.join("environ")).unwrap_or_default();
        let is_zombie = std::fs::read_to_string(path.join("stat")).is_ok_and(|stat| stat.contains(") Z "));
        if is_process && !is_zombie && String::from_utf8_lossy(&environ).contains(mark) {
            let line = std::fs::read_to_string(path.join("cmdline")).unwrap_or_default();
            found.push(line.replace('\0', " "));
        }
    }
    found
}

/// Waits until `ready` returns true, for at most ten seconds.
///
/// # Panics
/// When the ten seconds are over.
pub fn wait_for(what: &str, mut ready: impl FnMut() -> bool) {
    for _ in 0..500 {
        if ready() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("waited in vain for {what}");
}
