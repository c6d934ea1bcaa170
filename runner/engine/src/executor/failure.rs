//! The errors of external programs.

use super::command_run::Run;
use super::invisible::{self, Host};
use super::log;
use super::stage_dir::StageDir;
use runner_sandbox::Isolated;
use stages_core::StageError;
use stages_core::error::Cause;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;

/// The number of last lines that are shown of a failed program's output, and the numbers of lines and bytes
/// in which hints are searched for: the exception that caused another stands above it.
const LAST_LINES: usize = 10;
const SEARCHED_LINES: usize = 60;
const LAST_BYTES: u64 = 16 << 10;

/// The longest line that is shown, in characters.
const LONGEST_LINE: usize = 1000;

impl Run<'_> {
    /// Adds the last lines of the program's output to an error, with the hints that these lines suggest.
    pub(super) fn with_log(&self, mut error: StageError, dir: &StageDir, isolated: Isolated) -> StageError {
        let text = log::tail(self.log, LAST_BYTES).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        if lines.is_empty() {
            let _ = fs::remove_file(self.log);
            return error;
        }
        let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
        for line in last {
            error.message.push_str("\n    | ");
            error.message.extend(line.chars().take(LONGEST_LINE));
        }
        let mut hints: Vec<String> = error.hint.take().into_iter().collect();
        let python = self.command.python.as_ref();
        let host = Host {
            path: self.search_path(),
            home: self.program.host_env.get("HOME").map(Path::new),
            base: &self.program.base,
            files: self.files,
            work: &dir.seen(&dir.host("work")),
            modules: python.map(|python| python.root.as_str()),
            is_isolated: isolated == Isolated::Namespaces,
            visible: &self.visible(),
        };
        let searched = &lines[lines.len().saturating_sub(SEARCHED_LINES)..];
        hints.extend(invisible::hints(&searched.join("\n"), &host));
        hints.push(format!("its whole output is in {}", self.log.display()));
        error.hint(hints.join("; "))
    }
}

/// The error of a program that failed because the disk is full; `None` if there is space.
pub(super) fn full(dir: &Path, what: &str) -> Option<StageError> {
    /// The size of a write that may fail on a full disk.
    const ROOM: u64 = 64 << 10;
    let disk = rustix::fs::statvfs(dir).ok()?;
    // Some file systems do not report their number of files.
    let no_files = disk.f_files > 0 && disk.f_favail == 0;
    let no_bytes = disk.f_bavail.saturating_mul(disk.f_frsize) < ROOM;
    (no_bytes || no_files).then(|| StageError {
        cause: Cause::Store,
        ..StageError::new(format!("{what}, and the disk of `{}` is full", dir.display()))
            .hint("free disk space, or set `RUNNER_HOME` to a directory on another disk")
    })
}

pub(super) fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with status {code}"),
        (None, Some(signal)) => format!("was killed by {}", signal_name(signal)),
        (None, None) => "ended without an exit status".to_owned(),
    }
}

/// A signal's number and name.
pub(crate) fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        _ => return format!("signal {signal}"),
    };
    format!("signal {signal} ({name})")
}

/// The error of a stage that panicked.
pub(super) fn panicked(panic: &(dyn std::any::Any + Send)) -> StageError {
    let message = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    StageError::new(format!("the stage panicked: {message}"))
        .hint("this is a bug in the program; RUST_BACKTRACE=1 shows the backtrace")
}
