//! Plans as files: `plan --json` prints and `plan --save` writes them, `exec --plan` enforces them.

use crate::project::{PipelineArgs, Project, Selection};
use crate::session::Session;
use cache::{ActionKey, checksummed, regular_file};
use runner_engine::{self as engine, Failure, Options, Planned, Prediction};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The arguments of a plan.
#[derive(Deserialize, Serialize)]
pub(crate) struct PlanArguments {
    /// The absolute path of the pipeline file.
    file: PathBuf,
    #[serde(flatten)]
    selection: Selection,
}

impl PlanArguments {
    pub(super) fn new(session: &Session, args: &PipelineArgs) -> Self {
        Self {
            file: session.current.join(&args.pipeline),
            selection: args.selection.clone(),
        }
    }

    pub(super) fn pipeline(&self) -> PipelineArgs {
        PipelineArgs {
            pipeline: self.file.clone(),
            selection: self.selection.clone(),
        }
    }
}

/// A saved plan.
#[derive(Deserialize)]
pub(crate) struct SavedPlan {
    pub arguments: PlanArguments,
    stages: Vec<SavedStage>,
}

#[derive(Deserialize)]
struct SavedStage {
    stage: String,
    prediction: Prediction,
    key: Option<ActionKey>,
}

impl SavedPlan {
    pub(super) fn write(file: &Path, document: &Value) -> Result<(), Failure> {
        let failed = Failure::at("cannot write", file);
        let mut text = serde_json::to_string_pretty(document).map_err(|err| failed(err.into()))?;
        checksummed::add_checksum(&mut text);
        regular_file::write_or_stream(file, (text + "\n").as_bytes()).map_err(failed)
    }

    pub(super) fn read(file: &Path) -> Result<Self, Failure> {
        let wrong = |cause: String| Failure {
            causes: vec![cause],
            ..Failure::usage(format!("`{}` is not a plan", file.display()))
                .hint("create one with `runner plan PIPELINE --save FILE`")
        };
        let mut text = String::new();
        regular_file::open_or_stream(file)
            .and_then(|mut file| file.read_to_string(&mut text))
            .map_err(|err| wrong(err.to_string()))?;
        if !checksummed::matches_checksum(text.as_bytes()) {
            return Err(wrong("it was changed: its checksum is wrong".to_owned()));
        }
        serde_json::from_str(&text).map_err(|err| wrong(err.to_string()))
    }

    /// Plans again, and fails if the outcome differs. Returns the keys of the nodes whose keys are already
    /// known.
    pub(super) fn check(
        &self,
        project: &Project,
        options: &Options,
    ) -> Result<BTreeMap<usize, ActionKey>, Failure> {
        let now = engine::plan(&project.pipeline, &project.chosen, &project.store, options)?;
        let changes = self.changes(&now);
        if let Some(first) = changes.first() {
            let more = match changes.len() - 1 {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            return Err(
                Failure::usage(format!("something changed since the plan was made: {first}{more}"))
                    .hint("create a new plan with `runner plan PIPELINE --save FILE`"),
            );
        }
        Ok(now.iter().filter_map(|stage| Some((stage.node, stage.key?))).collect())
    }

    fn changes(&self, now: &[Planned]) -> Vec<String> {
        let mut changes = Vec::new();
        let by_name: HashMap<&str, &Planned> =
            now.iter().map(|stage| (stage.stage.as_str(), stage)).collect();
        for saved in &self.stages {
            let name = &saved.stage;
            match by_name.get(name.as_str()) {
                None => changes.push(format!("the stage `{name}` no longer exists")),
                Some(stage) if stage.key != saved.key => {
                    changes.push(format!("the configuration or an input of `{name}` changed"));
                }
                Some(stage) if stage.prediction != saved.prediction => {
                    let (was, is) = (saved.prediction.name(), stage.prediction.name());
                    changes.push(format!("the prediction for `{name}` changed from `{was}` to `{is}`"));
                }
                Some(_) => {}
            }
        }
        let planned: HashSet<&str> = self.stages.iter().map(|saved| saved.stage.as_str()).collect();
        let new = now.iter().filter(|stage| !planned.contains(stage.stage.as_str()));
        changes.extend(new.map(|stage| format!("there is a new stage `{}`", stage.stage)));
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_bit_of_a_saved_plan_is_inside_its_checksum() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("plan.json");
        let arguments = PlanArguments {
            file: PathBuf::from("/p.yaml"),
            selection: Selection {
                stages: vec!["train".to_owned()],
                force: vec!["env".to_owned()],
                ..Selection::default()
            },
        };
        let stages = json!([
            { "stage": "env", "prediction": "runs", "key": "07".repeat(32) },
            { "stage": "train", "prediction": "depends", "key": null },
        ]);
        SavedPlan::write(&file, &json!({ "arguments": arguments, "stages": stages })).unwrap();
        let read = || {
            let plan = SavedPlan::read(&file).ok()?;
            let stages = plan.stages.iter();
            let stages: Vec<_> = stages
                .map(|stage| (&stage.stage, stage.prediction, stage.key))
                .collect();
            Some(json!([plan.arguments, stages]))
        };
        let (intact, value) = (std::fs::read(&file).unwrap(), read());
        assert!(value.is_some());
        for bit in 0..intact.len() * 8 {
            let mut bytes = intact.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&file, bytes).unwrap();
            let found = read();
            assert!(
                found.is_none() || found == value,
                "bit {} of byte {}: {found:?}",
                bit % 8,
                bit / 8
            );
        }
    }

    #[test]
    fn a_fifo_is_neither_read_nor_written() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("plan.json");
        // The call is not declared for every system.
        let made = std::process::Command::new("mkfifo").arg(&file).status().unwrap();
        assert!(made.success());
        let refused = SavedPlan::read(&file).err().unwrap();
        assert!(
            refused.causes[0].contains("a FIFO, not a regular file"),
            "{:?}",
            refused.causes
        );
        let refused = SavedPlan::write(&file, &json!({})).err().unwrap();
        assert!(
            refused.causes[0].contains("a FIFO, not a regular file"),
            "{:?}",
            refused.causes
        );
    }
}
