//! A directory with pipelines and a home of its own.

use crate::Ended;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use tempfile::TempDir;

/// The path of the binary, which Cargo builds beside the tests of its package.
pub fn runner() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    // target/release/deps/TEST
    let folder = test.parent().and_then(Path::parent).unwrap();
    folder.join(format!("runner{}", std::env::consts::EXE_SUFFIX))
}

/// A temporary directory with the pipeline `p.yaml`, whose home is `home`.
pub struct Project {
    dir: TempDir,
}

impl Project {
    /// Creates a project with the pipeline `pipeline`.
    pub fn new(pipeline: impl Display) -> Self {
        let project = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        project.write("p.yaml", pipeline);
        project
    }

    /// The path of a file in the project.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The directory of the project's store and runs.
    pub fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// Writes a file and creates its parent directories.
    pub fn write(&self, name: &str, text: impl Display) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text.to_string()).unwrap();
    }

    /// Sets a command's directory and home to the project's, without remote store, colours or standard input.
    pub fn at_home<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command
            .current_dir(self.dir.path())
            .env("RUNNER_HOME", self.home())
            .env("NO_COLOR", "1")
            .env_remove("RUNNER_REMOTE")
            .stdin(Stdio::null())
    }

    /// A command that runs the binary with these arguments.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(runner());
        self.at_home(&mut command).args(args);
        command
    }

    /// Runs the binary until it exits.
    pub fn run(&self, args: &[&str]) -> Ended {
        self.command(args).output().unwrap().into()
    }

    /// Runs the binary until it exits, for at most `limit`.
    ///
    /// # Panics
    /// When the binary runs for longer than `limit`; it is then killed.
    pub fn run_within(&self, limit: Duration, args: &[&str]) -> Ended {
        within(limit, &mut self.command(args))
    }

    /// Runs `p.yaml`, one stage at a time, with events on standard output.
    pub fn exec(&self, args: &[&str]) -> Ended {
        self.run(&[&["exec", "p.yaml", "--json", "--jobs", "1"], args].concat())
    }

    /// The text of an output in the last run.
    pub fn output(&self, name: &str) -> String {
        let dest = tempfile::tempdir().unwrap();
        let at = dest.path().join("out");
        let ended = self.run(&["export", &format!("latest/{name}"), at.to_str().unwrap()]);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let texts = files(&at)
            .into_iter()
            .map(|path| std::fs::read_to_string(path).unwrap());
        texts.collect()
    }
}

/// Runs a command until it exits, for at most `limit`.
///
/// # Panics
/// When the command runs for longer than `limit`; it is then killed.
pub fn within(limit: Duration, command: &mut Command) -> Ended {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (id, (over, ended)) = (child.id().to_string(), channel::<()>());
    let watch = std::thread::spawn(move || {
        let hangs = ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
        if hangs {
            Command::new("kill").args(["-s", "KILL", &id]).status().unwrap();
        }
        hangs
    });
    let output = child.wait_with_output().unwrap();
    drop(over);
    let ended = Ended::from(output);
    assert!(!watch.join().unwrap(), "{command:?} hangs: {}", ended.text());
    ended
}

/// All files below a directory, sorted; empty if the directory does not exist.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}
