//! The schedule of a server: runs `runner schedule run-due` repeatedly, each time as a separate process.

use crate::site::Site;
use runner_engine::{Failure, exit, no_thread};
use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Builder, JoinHandle};
use std::time::{Duration, Instant};

/// The interval at which due nights are looked for.
const INTERVAL: Duration = Duration::from_secs(20);

/// The interval after a call was refused: its message is not repeated every few seconds.
const REFUSED: Duration = Duration::from_secs(3600);

/// The time after which a night that failed or was late is run again.
const RETRY_AFTER: &str = "1h";

/// The interval at which a signal to stop is checked for.
const LOOK: Duration = Duration::from_millis(100);

/// The thread that runs nights.
pub(crate) struct Nights(JoinHandle<()>);

impl Nights {
    /// Starts the thread. It ends when `stop` is set, and then asks a running night to stop, like a Ctrl-C.
    pub(crate) fn start(site: &Site, pipelines: &[PathBuf], stop: Arc<AtomicBool>) -> Result<Self, Failure> {
        let mut command = Command::new(&site.program);
        command
            .args(["schedule", "run-due", "--quiet", "--retry-after", RETRY_AFTER])
            .args(pipelines)
            .current_dir(&site.directory)
            .env("RUNNER_HOME", &site.home)
            .stdin(Stdio::null())
            // Errors are printed where the server prints its own.
            .stdout(Stdio::null());
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let run = move || {
            while !stop.load(Ordering::Relaxed) {
                let code = command.spawn().ok().and_then(|child| wait(child, &stop));
                let interval = match code {
                    Some(exit::WRONG_USAGE) => REFUSED,
                    _ => INTERVAL,
                };
                let again = Instant::now() + interval;
                while Instant::now() < again && !stop.load(Ordering::Relaxed) {
                    thread::sleep(LOOK);
                }
            }
        };
        Builder::new().spawn(run).map(Self).map_err(no_thread)
    }

    /// Waits for the thread to end.
    pub(crate) fn join(self) {
        // A panic of the thread has already been reported.
        let _ = self.0.join();
    }
}

/// Waits until a process has ended, and returns its exit code; asks it to stop once `stop` is set.
fn wait(mut child: Child, stop: &AtomicBool) -> Option<u8> {
    let mut is_asked = false;
    loop {
        match child.try_wait() {
            Ok(None) => {}
            ended => return ended.ok()??.code()?.try_into().ok(),
        }
        if stop.load(Ordering::Relaxed) && !is_asked {
            is_asked = true;
            if let Some(process) = Pid::from_raw(child.id().cast_signed()) {
                let _ = kill_process(process, Signal::INT);
            }
        }
        thread::sleep(LOOK);
    }
}
