//! A small process that outlives this one by a moment: it ends the external programs of an engine that was killed.
//!
//! External programs are started by the engine itself. Were it killed, nobody would know their process groups: so it writes
//! them down. The reaper sleeps until the pipe between them ends, and then kills what is on the list.

use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The argument that makes this program a reaper.
pub(crate) const REAPER: &str = "reaper";

/// The engine's end.
pub(super) struct Reaper {
    child: Child,
    /// The process groups, `+` where one begins and `-` where it is over: a file without a name, the reaper's standard output.
    list: File,
}

impl Reaper {
    /// Starts one, with its list in the folder `dir`.
    pub fn start(program: &Path, dir: &Path) -> io::Result<Self> {
        let list = tempfile::tempfile_in(dir)?;
        let child = Command::new(program)
            .arg0("runner")
            .arg(REAPER)
            .stdin(Stdio::piped())
            .stdout(list.try_clone()?)
            .stderr(Stdio::null())
            // Ctrl-C is for the engine.
            .process_group(0)
            .spawn()?;
        Ok(Self { child, list })
    }

    /// Names a group to end with the engine.
    pub fn keep(&self, group: i32) {
        self.tell('+', group);
    }

    /// Takes it back: it is over.
    pub fn release(&self, group: i32) {
        self.tell('-', group);
    }

    fn tell(&self, sign: char, group: i32) {
        // Where there is no room to write it down, nothing protects the group; the engine goes on.
        let _ = (&self.list).write_all(format!("{sign}{group}\n").as_bytes());
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        self.child.stdin.take();
        let _ = self.child.wait();
    }
}

/// The reaper's side: `runner reaper`. Ends when its engine does.
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
