//! Comparing runs, and finding, naming, tagging and keeping them, by the real binary.

#![allow(clippy::unwrap_used, reason = "tests")]

mod compared;
mod growth;
mod marks;
mod queries;
mod trained;
mod widths;

use runner_testkit::Ended;
use serde_json::Value;
use std::process::Command;

/// A project whose commands are written as sentences.
struct Project(runner_testkit::Project);

impl std::ops::Deref for Project {
    type Target = runner_testkit::Project;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Project {
    fn new(pipeline: impl std::fmt::Display) -> Self {
        Self(runner_testkit::Project::new(pipeline))
    }

    fn command(&self, args: &str) -> Command {
        self.0.command(&args.split_whitespace().collect::<Vec<_>>())
    }

    /// Runs a command; blanks part its arguments, those in `more` are whole.
    fn run(&self, args: &str, more: &[&str]) -> Ended {
        self.command(args).args(more).output().unwrap().into()
    }

    /// The output of a command that succeeds.
    fn ok(&self, args: &str, more: &[&str]) -> String {
        let ended = self.run(args, more);
        assert_eq!(ended.code, 0, "{args} {more:?}\n{}", ended.text());
        ended.stdout
    }

    fn json(&self, args: &str, more: &[&str]) -> Value {
        serde_json::from_str(&self.ok(args, &[more, &["--json"]].concat())).unwrap()
    }

    /// The message of a command that is refused.
    fn refused(&self, args: &str, more: &[&str]) -> String {
        let ended = self.run(args, more);
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (2, ""),
            "{args} {more:?}\n{}",
            ended.stderr
        );
        let told = ended.stderr.replace(&*self.path("").to_string_lossy(), "DIR/");
        let told = told.replace(self.path("").to_string_lossy().trim_end_matches('/'), "DIR");
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
