//! Comparing runs, and finding, naming, tagging and keeping them, by the real binary.

#![allow(clippy::unwrap_used, reason = "tests")]

mod compared;
mod marks;
mod queries;
mod trained;

use serde_json::Value;
use std::path::PathBuf;
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

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn command(&self, args: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
        command
            .args(args.split_whitespace())
            .current_dir(self.dir.path())
            .env("RUNNER_HOME", self.path("home"))
            .env("NO_COLOR", "1")
            .stdin(Stdio::null());
        command
    }

    /// Runs a command; blanks part its arguments, those in `more` are whole.
    fn run(&self, args: &str, more: &[&str]) -> Ended {
        let output = self.command(args).args(more).output().unwrap();
        Ended {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// What a command that ends well prints.
    fn ok(&self, args: &str, more: &[&str]) -> String {
        let ended = self.run(args, more);
        assert_eq!(ended.code, 0, "{args} {more:?}\n{}{}", ended.stdout, ended.stderr);
        ended.stdout
    }

    fn json(&self, args: &str, more: &[&str]) -> Value {
        serde_json::from_str(&self.ok(args, &[more, &["--json"]].concat())).unwrap()
    }

    /// What a command that is refused says.
    fn refused(&self, args: &str, more: &[&str]) -> String {
        let ended = self.run(args, more);
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (2, ""),
            "{args} {more:?}\n{}",
            ended.stderr
        );
        let told = ended.stderr.replace(&*self.dir.path().to_string_lossy(), "DIR");
        let runs = std::fs::read_dir(self.path("home/runs"))
            .into_iter()
            .flatten()
            .flatten();
        runs.fold(told, |told, run| {
            told.replace(&*run.file_name().to_string_lossy(), "RUN")
        })
    }

    /// Executes a pipeline, and returns the run's id.
    fn exec(&self, args: &str) -> String {
        self.ok(&format!("exec -q {args}"), &[]);
        let runs = self.json("runs --last 1", &[]);
        runs[0]["id"].as_str().unwrap().to_owned()
    }
}

/// A program that reports a curve of three steps, whose last value is `value`.
fn measures(value: &str) -> String {
    format!(
        r#"
    run: |
      for step in 0 10 20; do
        echo '{{"name":"return","step":'$step',"value":'$(({value} * step / 20))'}}'
      done > ${{outputs.metrics}}
    outputs: {{ metrics: metrics.jsonl }}
"#
    )
}
