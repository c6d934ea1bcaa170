//! The reaper: a small child process that outlives the engine and kills the external programs of an engine that was killed.
//!
//! The engine starts external programs itself. If it were killed, no process would know their process groups, so it writes
//! them to a list. The reaper blocks until the pipe from the engine reaches end of file, and then kills the listed groups.

use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The argument that runs this program as a reaper.
pub(crate) const REAPER: &str = "reaper";

/// The engine's side.
pub(super) struct Reaper {
    child: Child,
    /// The list of process groups, `+` for a start and `-` for an end: an unnamed file, the reaper's standard output.
    list: File,
}

impl Reaper {
    /// Starts a reaper, with its list in the directory `dir`.
    pub fn start(program: &Path, dir: &Path) -> io::Result<Self> {
        let list = tempfile::tempfile_in(dir)?;
        let child = Command::new(program)
            .arg0("runner")
            .arg(REAPER)
            .stdin(Stdio::piped())
            .stdout(list.try_clone()?)
            .stderr(Stdio::null())
            // Ctrl-C reaches the engine only.
            .process_group(0)
            .spawn()?;
        Ok(Self { child, list })
    }

    /// Registers a group to be killed when the engine exits.
    pub fn keep(&self, group: i32) {
        self.tell('+', group);
    }

    /// Unregisters a group that is gone.
    pub fn release(&self, group: i32) {
        self.tell('-', group);
    }

    fn tell(&self, sign: char, group: i32) {
        // If the disk is full, the group is not protected; the engine continues.
        let _ = (&self.list).write_all(format!("{sign}{group}\n").as_bytes());
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        self.child.stdin.take();
        let _ = self.child.wait();
    }
}

/// The reaper's side: `runner reaper`. Exits when its engine does.
pub fn reaper() -> u8 {
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    let Ok(list) = io::stdout().as_fd().try_clone_to_owned() else {
        return 1;
    };
    let (mut list, mut text) = (File::from(list), String::new());
    if list.rewind().and_then(|()| list.read_to_string(&mut text)).is_err() {
        return 1;
    }
    let mut groups = BTreeSet::new();
    for line in text.lines() {
        match line.split_at_checked(1) {
            Some(("+", group)) => groups.extend(group.parse::<i32>()),
            Some(("-", group)) => groups.retain(|known: &i32| Ok(*known) != group.parse()),
            _ => {}
        }
    }
    for group in groups.into_iter().filter_map(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    0
}
