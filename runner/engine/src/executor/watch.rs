//! The wait for an external program.

use super::limits::Limits;
use super::log::LogWriter;
use runner_sandbox::{Running, Said};
use runner_sandbox::{USAGE, family_memory, tree_cpu};
use stages_core::{EventSink, StageError, StageEvent};
use std::collections::BTreeSet;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// The time that a program has to exit after it was asked to.
const GRACE: Duration = Duration::from_secs(5);

/// The time that its processes have to be gone after they were killed; the kernel may not let one of them go.
const KILLED: Duration = Duration::from_secs(40);

/// The end of a program.
pub(super) struct Ended {
    pub status: ExitStatus,
    pub executed: Option<BTreeSet<PathBuf>>,
    /// True if one of its processes was killed for exceeding the limit of its memory.
    pub out_of_memory: bool,
    pub peak_memory: Option<u64>,
    pub over_time: Option<Duration>,
}

/// Waits until the family of a program is gone; passes on its progress, by `pass_on` too, and ends it at its
/// limits.
pub(super) fn watch(
    running: &mut Running,
    log: &LogWriter,
    started: Instant,
    events: &dyn EventSink,
    limits: &Limits,
    pass_on: &dyn Fn(),
) -> Result<Ended, StageError> {
    let lost = |err: io::Error| StageError::new(format!("the program's supervisor ended: {err}"));
    let mut pid = None;
    let mut peak = 0;
    let mut reported = started;
    let mut asked: Option<Instant> = None;
    let mut killed: Option<Instant> = None;
    let mut over_time = None;
    let mut pause = Duration::from_millis(10);
    loop {
        match running.said(pause).map_err(lost)? {
            Some(Said::Started { pid: started }) => {
                pid = Some(started);
                continue;
            }
            Some(Said::Ended {
                status,
                executed,
                out_of_memory,
            }) => {
                return Ok(Ended {
                    status: ExitStatus::from_raw(status),
                    executed,
                    out_of_memory,
                    peak_memory: (peak > 0).then_some(peak),
                    over_time,
                });
            }
            Some(Said::Failed { message } | Said::Unprepared { message }) => {
                return Err(StageError::new(format!("cannot start the program: {message}")));
            }
            None => pause = (pause * 2).min(Duration::from_millis(200)),
        }
        if let Some(pid) = pid {
            let memory = family_memory(pid);
            peak = peak.max(memory);
            if reported.elapsed() >= USAGE {
                reported = Instant::now();
                let cpu_seconds = tree_cpu(pid);
                events.emit(StageEvent::Usage { cpu_seconds, memory });
            }
        }
        pass_on();
        if let Some(message) = log.last_line() {
            events.emit(StageEvent::Progress {
                done: 0,
                total: None,
                message,
            });
        }
        if asked.is_none() {
            over_time = limits.timeout.filter(|limit| started.elapsed() > *limit);
            if over_time.is_some() || limits.cancel.is_cancelled() {
                running.terminate();
                asked = Some(Instant::now());
                pause = Duration::from_millis(10);
            }
        }
        let is_late = asked.is_some_and(|since| since.elapsed() > GRACE.min(limits.grace));
        if killed.is_none() && (is_late || limits.kill.is_cancelled()) {
            running.kill();
            killed = Some(Instant::now());
        }
        if killed.is_some_and(|since| since.elapsed() > KILLED) {
            return Err(
                StageError::new("the program's processes do not end although they were killed")
                    .hint("they may wait for a file system that does not answer"),
            );
        }
    }
}
