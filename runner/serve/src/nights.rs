//! The schedule of a server: runs `runner schedule run-due` repeatedly, each time as a separate process.

use crate::site::Site;
use runner_engine::{Failure, no_thread};
use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Builder, JoinHandle};
use std::time::{Duration, Instant};

/// The interval at which due nights are looked for.
const INTERVAL: Duration = Duration::from_secs(20);

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
                if let Ok(child) = command.spawn() {
                    wait(child, &stop);
                }
                let again = Instant::now() + INTERVAL;
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

/// Waits until a process has ended; asks it to stop once `stop` is set.
fn wait(mut child: Child, stop: &AtomicBool) {
    let mut is_asked = false;
    while let Ok(None) = child.try_wait() {
        if stop.load(Ordering::Relaxed) && !is_asked {
            is_asked = true;
            if let Some(process) = Pid::from_raw(child.id().cast_signed()) {
                let _ = kill_process(process, Signal::INT);
            }
        }
        thread::sleep(LOOK);
    }
}
