//! The outcome of a command.

use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Output;

/// The digests of stages' outputs, by stage.
pub type Digests = BTreeMap<String, String>;

/// The exit code and the output of a command.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; -1 if the command was killed.
    pub code: i32,
    /// The command's standard output.
    pub stdout: String,
    /// The command's standard error.
    pub stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Ended {
    /// The command's standard output followed by its standard error.
    pub fn text(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// The events on standard output, one per line; a kill or a full disk may truncate the last line.
    ///
    /// # Panics
    /// When a line other than the last is not an event.
    pub fn events(&self) -> Vec<Value> {
        let lines: Vec<&str> = self.stdout.lines().collect();
        let mut events = Vec::new();
        for (i, line) in lines.iter().enumerate() {
            match serde_json::from_str(line) {
                Ok(event) => events.push(event),
                Err(_) if i + 1 == lines.len() => {}
                Err(err) => panic!("{err}: {line}"),
            }
        }
        events
    }

    fn finished(&self) -> Vec<Value> {
        let mut events = self.events();
        events.retain(|event| event["event"] == "stage_finished");
        events
    }

    /// The final status of each stage, in the order in which the stages ended.
    pub fn log(&self) -> String {
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

    /// The outputs of every stage that succeeded, from its last success.
    pub fn digests(&self) -> Digests {
        let finished = self.finished().into_iter();
        let well = finished.filter(|event| event["status"] == "ran" || event["status"] == "cached");
        well.map(|event| {
            (
                event["stage"].as_str().unwrap().to_owned(),
                event["outputs"].to_string(),
            )
        })
        .collect()
    }

    /// The stages with the final status `status`.
    pub fn stages(&self, status: &str) -> Vec<String> {
        let finished = self.finished().into_iter();
        let so = finished.filter(|event| event["status"] == status);
        so.map(|event| event["stage"].as_str().unwrap().to_owned()).collect()
    }

    /// The error of a failed stage.
    pub fn error(&self, stage: &str) -> String {
        let finished = self.finished().into_iter();
        let of_stage = finished.filter(|event| event["stage"] == stage);
        of_stage
            .map(|event| event["error"].as_str().unwrap_or_default().to_owned())
            .collect()
    }
}
