//! The command line and the engine, by the real binary, on pipelines of external programs.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod cached;
mod commands;
mod failures;
mod history;
mod incremental;
mod killed;
mod lookahead;
mod outside;
mod programs;
mod remote;
mod shared;
mod sweeps;
mod trust;
mod watch;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A folder with pipelines, and a home of its own.
struct Project {
    dir: TempDir,
}

/// What a command gave.
struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Project {
    fn new(pipeline: &str) -> Self {
        let project = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        project.write("p.yaml", pipeline);
        project
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn home(&self) -> PathBuf {
        self.path("home")
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
        command
            .args(args)
            .current_dir(self.dir.path())
            .env("RUNNER_HOME", self.home())
            .env_remove("RUNNER_REMOTE")
            .env_remove("NO_COLOR")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Ended {
        let output = self.command(args).output().unwrap();
        Ended {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs `p.yaml`, one stage at a time, with events on standard output.
    fn exec(&self, args: &[&str]) -> Ended {
        let mut all = vec!["exec", "p.yaml", "--json", "--jobs", "1"];
        all.extend(args);
        self.run(&all)
    }

    /// The text of an output in the last run.
    fn output(&self, name: &str) -> String {
        let dest = tempfile::tempdir().unwrap();
        let at = dest.path().join("out");
        let ended = self.run(&["export", &format!("latest/{name}"), at.to_str().unwrap()]);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let mut text = String::new();
        for path in files(&at) {
            text.push_str(&std::fs::read_to_string(path).unwrap());
        }
        text
    }
}

impl Ended {
    fn events(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// How each stage ended, in the order in which they did.
    fn log(&self) -> String {
        let mut log = Vec::new();
        for event in self.events() {
            let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
            match event["event"].as_str().unwrap() {
                "stage_finished" => log.push(format!("{} {}", text("status"), text("stage"))),
                "stage_healing" => log.push(format!("healing {} for {}", text("stage"), text("found_by"))),
                "stage_retried" => log.push(format!("retried {}", text("stage"))),
                _ => {}
            }
        }
        log.join("\n")
    }

    /// The outputs of every stage, without the order in which they ended.
    fn digests(&self) -> Vec<String> {
        let mut digests: Vec<String> = self
            .events()
            .iter()
            .filter(|event| event["event"] == "stage_finished")
            .map(|event| format!("{} {}", event["stage"], event["outputs"]))
            .collect();
        digests.sort();
        digests
    }

    /// Why a stage failed.
    fn error(&self, stage: &str) -> String {
        self.events()
            .iter()
            .filter(|event| event["event"] == "stage_finished" && event["stage"] == stage)
            .map(|event| event["error"].as_str().unwrap_or_default().to_owned())
            .collect()
    }
}

/// All files below a folder, in order.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path))
        } else {
            found.push(path)
        }
    }
    found.sort();
    found
}

/// Processes whose environment holds `mark`.
fn marked(mark: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let path = entry.path();
        let is_process = entry.file_name().to_string_lossy().chars().all(|c| c.is_ascii_digit());
        let environ = std::fs::read(path.join("environ")).unwrap_or_default();
        let zombie = std::fs::read_to_string(path.join("stat")).is_ok_and(|stat| stat.contains(") Z "));
        if is_process && !zombie && String::from_utf8_lossy(&environ).contains(mark) {
            found.push(
                std::fs::read_to_string(path.join("cmdline"))
                    .unwrap_or_default()
                    .replace('\0', " "),
            );
        }
    }
    found
}

/// Waits until `ready`, ten seconds at most.
fn wait_for(what: &str, mut ready: impl FnMut() -> bool) {
    for _ in 0..500 {
        if ready() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("waited in vain for {what}");
}
