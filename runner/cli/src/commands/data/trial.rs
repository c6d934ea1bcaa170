//! Stages that are run on their files, in a store of their own, before they are shown or written.

use super::read::Read;
use crate::registry;
use crate::session::temporary_directory;
use cache::{KeyHasher, Store};
use runner_engine::Failure;
use serde_json::Value;
use stages_core::event::{EventSink, StageEvent};
use stages_core::{ConfigProblem, Context, Input, PlanContext, StageError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// The outputs of stages by stage and name.
pub(super) type Made = BTreeMap<String, BTreeMap<String, Input>>;

/// A store for trials, and the directory that paths are relative to.
pub(super) struct Scratch {
    pub store: Store,
    base: PathBuf,
    _home: TempDir,
}

/// The warnings of stages.
#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl EventSink for Heard {
    fn emit(&self, event: StageEvent) {
        if let (StageEvent::Warning { message, hint }, Ok(mut heard)) = (event, self.0.lock()) {
            heard.push(match hint {
                Some(hint) => format!("{message}; {hint}"),
                None => message,
            });
        }
    }
}

/// A stage that was refused.
pub(super) struct Refused {
    /// The stage's name.
    pub stage: String,
    pub error: StageError,
}

/// The stages that were run.
pub(super) struct Ran {
    pub made: Made,
    /// The warnings, in the order in which they came.
    pub warnings: Vec<String>,
}

/// The error of a stage whose settings are wrong.
pub(super) fn of_problem(problem: ConfigProblem) -> StageError {
    let message = match problem.field.as_str() {
        "path" | "" => problem.message,
        field => format!("{field}: {}", problem.message),
    };
    StageError {
        hint: problem.hint,
        ..StageError::new(message)
    }
}

/// The stages of a text below `stages:`, by name.
pub(super) fn parsed(stages: &str) -> Result<BTreeMap<String, Value>, StageError> {
    let options = serde_yaml::Options::default();
    serde_yaml::from_str_with_options(stages, options)
        .map_err(|err| StageError::new(err.to_string().trim().to_owned()))
}

impl Scratch {
    pub(super) fn new(base: &Path) -> Result<Self, Failure> {
        let home = temporary_directory()?;
        Ok(Self {
            store: Store::open(&home.path().join("home"))?,
            base: base.to_owned(),
            _home: home,
        })
    }

    /// Runs the stages of a text below `stages:`, but no training and no evaluation.
    pub(super) fn run(&self, stages: &str) -> Result<Ran, Refused> {
        let nowhere = |error: StageError| Refused {
            stage: String::new(),
            error,
        };
        let mut waiting = parsed(stages).map_err(nowhere)?;
        waiting.retain(|_, stage| {
            let kind = stage["uses"].as_str().unwrap_or_default();
            !kind.starts_with("train/") && !kind.starts_with("evaluate/")
        });
        let heard = Arc::new(Heard::default());
        let mut made = Made::new();
        while !waiting.is_empty() {
            let ready = waiting
                .iter()
                .find_map(|(name, stage)| Some((name.clone(), inputs(stage, &made)?)));
            let Some((name, inputs)) = ready else {
                return Err(nowhere(StageError::new(
                    "a stage needs another one that does not exist",
                )));
            };
            let stage = waiting.remove(&name).unwrap_or_default();
            let events: Arc<dyn EventSink> = heard.clone();
            let outputs = self.stage(&stage, inputs, events);
            made.insert(name.clone(), outputs.map_err(|error| Refused { stage: name, error })?);
        }
        let warnings = heard.0.lock().map(|heard| heard.clone()).unwrap_or_default();
        Ok(Ran { made, warnings })
    }

    /// Runs a stage, and returns its first output and its warnings.
    pub(super) fn read(&self, yaml: &str) -> Result<(Read, Vec<String>), StageError> {
        let ran = self.run(yaml).map_err(|refused| refused.error)?;
        let output = ran.made.into_values().flat_map(BTreeMap::into_values).next();
        let output = output.ok_or_else(|| StageError::new("the stage has no output"))?;
        Ok((Read::new(&self.store, output), ran.warnings))
    }

    /// The implied volatilities of a chain.
    pub(super) fn volatilities(&self, chain: Input) -> Result<Input, StageError> {
        let stage = serde_json::json!({ "uses": "greeks/implied_volatility", "with": {} });
        let inputs = BTreeMap::from([("chain".to_owned(), vec![chain])]);
        let outputs = self.stage(&stage, inputs, Arc::new(Heard::default()))?;
        outputs
            .into_values()
            .next()
            .ok_or_else(|| StageError::new("the stage has no output"))
    }

    fn stage(
        &self,
        stage: &Value,
        inputs: BTreeMap<String, Vec<Input>>,
        events: Arc<dyn EventSink>,
    ) -> Result<BTreeMap<String, Input>, StageError> {
        let name = stage["uses"].as_str().unwrap_or_default();
        let kind = registry::find(name)
            .ok_or_else(|| StageError::new(format!("there is no stage kind `{name}`")))?;
        let config = kind.resolve(stage["with"].clone()).map_err(of_problem)?;
        if inputs.is_empty() {
            let plan = PlanContext {
                base: &self.base,
                inputs: BTreeMap::new(),
            };
            kind.check(&config, &plan).map_err(of_problem)?;
        }
        let mut context = Context::new(KeyHasher::new("runner data").action_key(), self.store.clone());
        context.sources = kind.sources(&config, &self.base).map_err(of_problem)?;
        context.inputs = inputs;
        context.events = events;
        let outputs = kind.run(&config, &context)?;
        let input = |(name, digest)| {
            let artifact = self
                .store
                .artifact(digest)
                .map_err(|err| StageError::new(err.to_string()))?;
            Ok((name, Input { digest, artifact }))
        };
        outputs.into_iter().map(input).collect()
    }
}

/// The inputs of a stage; `None` while one of them is not made.
fn inputs(stage: &Value, made: &Made) -> Option<BTreeMap<String, Vec<Input>>> {
    let one = |port: &str, text: &Value| {
        let (name, output) = match text.as_str()?.split_once('.') {
            Some((name, output)) => (name, Some(output)),
            None => (text.as_str()?, None),
        };
        let outputs = made.get(name)?;
        let found = match output {
            Some(output) => outputs.get(output),
            None => outputs.get(port).or_else(|| outputs.values().next()),
        };
        found.cloned()
    };
    let needs = stage["needs"].as_object().into_iter().flatten();
    needs
        .map(|(port, text)| {
            let texts = match text {
                Value::Array(list) => list.iter().collect(),
                one => vec![one],
            };
            let inputs: Option<Vec<Input>> = texts.into_iter().map(|text| one(port, text)).collect();
            Some((port.clone(), inputs?))
        })
        .collect()
}
