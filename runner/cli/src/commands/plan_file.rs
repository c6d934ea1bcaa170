//! Plans as files: `plan --json` prints and `plan --save` writes them, `exec --plan` enforces them.

use crate::args::{PipelineArgs, Selection};
use crate::session::{Project, Session};
use cache::{ActionKey, checksummed};
use runner_engine::{self as engine, Failure, Options, Planned, Prediction};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
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
    pub fn new(session: &Session, args: &PipelineArgs) -> Self {
        Self {
            file: session.current.join(&args.pipeline),
            selection: args.selection.clone(),
        }
    }

    pub fn pipeline(&self) -> PipelineArgs {
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
    pub fn write(file: &Path, document: &Value) -> Result<(), Failure> {
        let failed = |err: std::io::Error| Failure::caused(format!("cannot write `{}`", file.display()), &err);
        let mut text = serde_json::to_string_pretty(document)
            .map_err(std::io::Error::from)
            .map_err(failed)?;
        checksummed::add_checksum(&mut text);
        std::fs::write(file, text + "\n").map_err(failed)
    }

    pub fn read(file: &Path) -> Result<Self, Failure> {
        let wrong = |cause: String| Failure {
            causes: vec![cause],
            ..Failure::usage(format!("`{}` is not a plan", file.display()))
                .hint("create one with `runner plan PIPELINE --save FILE`")
        };
        let text = std::fs::read_to_string(file).map_err(|err| wrong(err.to_string()))?;
        if !checksummed::matches_checksum(text.as_bytes()) {
            return Err(wrong("it was changed: its checksum is wrong".to_owned()));
        }
        serde_json::from_str(&text).map_err(|err| wrong(err.to_string()))
    }

    /// Plans again and rejects a different outcome. Returns the keys of the nodes whose keys are known already.
    pub fn check(&self, project: &Project, options: &Options) -> Result<BTreeMap<usize, ActionKey>, Failure> {
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
        for saved in &self.stages {
            let name = &saved.stage;
            match now.iter().find(|stage| stage.stage == *name) {
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
        let planned = |stage: &&Planned| self.stages.iter().any(|saved| saved.stage == stage.stage);
        let new = now.iter().filter(|stage| !planned(stage));
        changes.extend(new.map(|stage| format!("there is a new stage `{}`", stage.stage)));
        changes
    }
}
