//! The descendants of a program without a PID namespace.
//!
//! The supervisor is a child subreaper: a process whose parent exits becomes its child, whatever session or
//! group the process is in. So every process of the family is a descendant of the supervisor. On systems
//! without subreapers, the family is the program's process group.

use super::usage::descendants;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, wait};
use std::time::{Duration, Instant};

/// The longest wait for killed processes to exit: a process that the kernel does not release may take
/// forever.
const LONGEST: Duration = Duration::from_secs(30);

/// Sends a signal to every process of the family, whose first process is `first`.
pub(super) fn signal(first: Pid, signal: Signal) {
    let _ = kill_process_group(first, signal);
    for pid in descendants(std::process::id()).into_iter().filter_map(raw) {
        let _ = kill_process(pid, signal);
    }
}

fn raw(pid: u32) -> Option<Pid> {
    Pid::from_raw(pid.cast_signed())
}

/// Kills the processes of the family that are left after its first process, and waits until they are gone.
pub(super) fn kill_all(first: Pid) {
    let began = Instant::now();
    // Without a subreaper, the rest of the group need not be children of this process: `wait` may know none.
    if cfg!(not(target_os = "linux")) {
        signal(first, Signal::KILL);
    }
    loop {
        match wait(WaitOptions::NOHANG) {
            Err(Errno::CHILD) => break,
            Ok(Some(_)) | Err(Errno::INTR) => continue,
            _ => {}
        }
        signal(first, Signal::KILL);
        if began.elapsed() > LONGEST {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
