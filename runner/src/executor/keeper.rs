//! A small process that outlives this one by a moment: it ends the external programs of an engine that was killed.
//!
//! External programs are started by the engine itself. Were it killed, nobody would know their process groups: so it tells
//! them to the keeper, which reads until the pipe between them ends and then kills what is left.

use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeSet;
use std::io::{self, BufRead as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// The argument that makes this program a keeper.
pub(crate) const KEEPER: &str = "keeper";

/// The engine's end.
pub(super) struct Keeper {
    child: Child,
    pipe: Mutex<Option<ChildStdin>>,
}

impl Keeper {
    /// Starts one.
    pub fn start(program: &Path) -> io::Result<Self> {
        let mut child = Command::new(program)
            .arg0("runner")
            .arg(KEEPER)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C is for the engine.
            .process_group(0)
            .spawn()?;
        let pipe = Mutex::new(child.stdin.take());
        Ok(Self { child, pipe })
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
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipe) = pipe.as_mut() {
            // A keeper that is gone protects nothing; the engine goes on.
            let _ = pipe.write_all(format!("{sign}{group}\n").as_bytes());
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.pipe.lock().unwrap_or_else(PoisonError::into_inner).take();
        let _ = self.child.wait();
    }
}

/// The keeper's side: `runner keeper`. Ends when its engine does.
pub fn keeper() -> u8 {
    let mut groups = BTreeSet::new();
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
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
