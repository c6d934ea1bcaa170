//! What a command ended with.

use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Output;

/// The outputs of stages, by stage.
pub type Digests = BTreeMap<String, String>;

/// The exit code and the output of a command.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; -1 of a command that was killed.
    pub code: i32,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
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
    /// All that it wrote.
    pub fn text(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// The events on its standard output, one a line; the last line may be cut short, by a kill or a full disk.
    ///
    /// # Panics
    /// When another line is no event.
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

    /// How each stage ended, in the order in which they did.
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

    /// The outputs of every stage that ended well, the last time it did.
    pub fn digests(&self) -> Digests {
        let finished = self.finished().into_iter();
        let well = finished.filter(|event| event["status"] != "failed");
        well.map(|event| {
            (
                event["stage"].as_str().unwrap().to_owned(),
                event["outputs"].to_string(),
            )
        })
        .collect()
    }

    /// The stages that ended so.
    pub fn stages(&self, status: &str) -> Vec<String> {
        let finished = self.finished().into_iter();
        let so = finished.filter(|event| event["status"] == status);
        so.map(|event| event["stage"].as_str().unwrap().to_owned()).collect()
    }

    /// Why a stage failed.
    pub fn error(&self, stage: &str) -> String {
        let finished = self.finished().into_iter();
        let of_stage = finished.filter(|event| event["stage"] == stage);
        of_stage
            .map(|event| event["error"].as_str().unwrap_or_default().to_owned())
            .collect()
    }
}
