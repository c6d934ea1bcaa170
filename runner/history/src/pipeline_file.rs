//! `pipeline.json`: the resolved pipeline of a run.

use runner_engine::key::{RUN, RUN_VERSION};
use runner_pipeline::{Command, Node, Pipeline, Resources, Work};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A resolved pipeline.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResolvedPipeline {
    /// The pipeline's name.
    pub name: String,
    /// The first paragraph of comments in the pipeline file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The pipeline file.
    pub file: PathBuf,
    /// The resolved parameters.
    pub params: BTreeMap<String, Value>,
    /// The pipeline's stages in topological order.
    #[serde(with = "shared")]
    pub stages: Vec<Arc<ResolvedStage>>,
}

/// A resolved stage.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ResolvedStage {
    /// The stage's id: `train`, or `train[seed=1]`.
    pub id: String,
    /// The stage's name in the file.
    pub stage: String,
    /// The point of the matrix, by axis.
    pub point: BTreeMap<String, Value>,
    /// The stage kind; `run` for an external program.
    pub kind: String,
    /// The version of the kind's implementation.
    pub version: u32,
    /// The stage's configuration, with defaults filled in.
    pub config: Settings,
    /// The stage's inputs by port: `stage.output`, or `run/stage.output` of an earlier run.
    pub needs: BTreeMap<String, Vec<String>>,
    /// The types of the stage's outputs, by name.
    #[serde(rename = "outputs")]
    pub types: BTreeMap<String, String>,
    /// The stage's resource limits.
    pub resources: Resources,
    /// The directory to which the stage's paths are relative; given only if the stage comes from an included
    /// file and the directory is not the pipeline file's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<PathBuf>,
}

/// The configuration of a resolved stage, converted to JSON on demand.
#[derive(Clone, Debug)]
pub enum Settings {
    /// The configuration of a stage kind, or any configuration read from a file.
    Values(Value),
    /// The configuration of an external program.
    Program(Arc<Command>),
}

impl Settings {
    /// The configuration as JSON.
    pub fn value(&self) -> Cow<'_, Value> {
        match self {
            Self::Values(value) => Cow::Borrowed(value),
            Self::Program(command) => Cow::Owned(serde_json::to_value(&**command).unwrap_or_default()),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::Values(Value::Null)
    }
}

impl Serialize for Settings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Values(value) => value.serialize(serializer),
            Self::Program(command) => command.as_ref().serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::Values)
    }
}

/// Serialises shared stages by value.
mod shared {
    use super::{Arc, ResolvedStage};
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        stages: &[Arc<ResolvedStage>],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(stages.iter().map(|stage| &**stage))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Arc<ResolvedStage>>, D::Error> {
        let stages = Vec::<ResolvedStage>::deserialize(deserializer)?;
        Ok(stages.into_iter().map(Arc::new).collect())
    }
}

impl ResolvedPipeline {
    /// Resolves the given nodes of a pipeline.
    pub fn new(pipeline: &Pipeline, nodes: &[usize]) -> Self {
        Self {
            name: pipeline.name.clone(),
            description: pipeline.description.clone(),
            file: pipeline.path(),
            params: pipeline.params.clone(),
            stages: nodes
                .iter()
                .map(|&i| Arc::new(ResolvedStage::new(pipeline, &pipeline.nodes[i])))
                .collect(),
        }
    }
}

impl ResolvedStage {
    /// Resolves a node whose needs are nodes of the pipeline.
    pub fn new(pipeline: &Pipeline, node: &Node) -> Self {
        Self::with_names(pipeline, node, |need| &pipeline.nodes[need].id)
    }

    /// Resolves a node of a pipeline whose needs have the names that `id` gives.
    pub fn with_names<'n>(pipeline: &Pipeline, node: &Node, id: impl Fn(usize) -> &'n str) -> Self {
        let (kind, version, config) = match &node.work {
            Work::Kind { kind, config } => {
                (kind.name(), kind.version(), Settings::Values(Value::clone(config)))
            }
            Work::Command(command) => (RUN, RUN_VERSION, Settings::Program(Arc::clone(command))),
        };
        let mut needs: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (port, refs) in &node.needs {
            let refs = refs.iter().map(|need| format!("{}.{}", id(need.node), need.output));
            needs.entry(port.clone()).or_default().extend(refs);
        }
        for (port, earlier) in &node.earlier {
            let names = earlier.iter().map(|earlier| earlier.name.clone());
            needs.entry(port.clone()).or_default().extend(names);
        }
        ResolvedStage {
            id: node.id.clone(),
            stage: node.stage.clone(),
            point: node.point.clone(),
            kind: kind.to_owned(),
            version,
            config,
            needs,
            types: node
                .provides
                .iter()
                .map(|(name, provided)| (name.clone(), provided.ty.name().to_owned()))
                .collect(),
            resources: node.resources.clone(),
            base: (*node.base != *pipeline.base).then(|| node.base.to_path_buf()),
        }
    }
}
