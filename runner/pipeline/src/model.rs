//! A resolved pipeline: every parameter replaced, every matrix expanded, every port connected and checked.

use super::earlier::Earlier;
use super::task_graph::TaskGraph;
use cache::ArtifactDigest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stages_core::{AnyStage, Provided};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A pipeline, ready to be planned and run.
pub struct Pipeline {
    /// Its name.
    pub name: String,
    /// The file.
    pub file: PathBuf,
    /// The file's folder, absolute.
    pub base: PathBuf,
    /// Its parameters as resolved.
    pub params: BTreeMap<String, Value>,
    /// Its stages, expanded, each after all that it needs.
    pub nodes: Vec<Node>,
    /// Which node needs which other ones, by their indices.
    pub graph: TaskGraph,
}

/// The graph of nodes that are expanded.
pub(crate) fn graph_of(nodes: &[Node]) -> TaskGraph {
    let needs = |(i, node): (usize, &Node)| {
        let needs = node.needs.values().flatten();
        needs.map(move |need| (i, need.node)).collect::<Vec<_>>()
    };
    TaskGraph::new(nodes.len(), nodes.iter().enumerate().flat_map(needs))
}

/// One stage, or one point of a matrix stage.
pub struct Node {
    /// `train`, or `train[seed=1]`.
    pub id: String,
    /// The name in the file.
    pub stage: String,
    /// The point of the matrix, by axis, its own and those of what it fans out over.
    pub point: BTreeMap<String, Value>,
    /// What to do.
    pub work: Work,
    /// What it reads, by port.
    pub needs: BTreeMap<String, Vec<InputRef>>,
    /// What it reads of earlier runs, by port; after what it reads of this pipeline's stages at the same port.
    pub earlier: BTreeMap<String, Vec<Earlier>>,
    /// What its outputs will hold, as far as that is known.
    pub provides: BTreeMap<String, Provided>,
    /// What it asks of the machine.
    pub resources: Resources,
    /// How often to try again after a failure.
    pub retries: u32,
    /// When to give up.
    pub timeout: Option<Duration>,
    /// The folder of the file that says what it does, absolute: its relative paths are relative to it.
    pub base: Arc<Path>,
    /// Where it stands in the file.
    pub place: Place,
}

impl Node {
    /// Adds what it reads of earlier runs to its inputs.
    pub fn add_earlier(&self, inputs: &mut BTreeMap<String, Vec<ArtifactDigest>>) {
        for (port, earlier) in &self.earlier {
            let digests = earlier.iter().map(|earlier| earlier.digest);
            inputs.entry(port.clone()).or_default().extend(digests);
        }
    }
}

/// What a stage does.
pub enum Work {
    /// A stage kind with its resolved configuration.
    Kind {
        /// The kind.
        kind: &'static dyn AnyStage,
        /// Its configuration, defaults filled in.
        config: Value,
    },
    /// An external program; the history of a run shares what is said of it.
    Command(Arc<Command>),
}

/// A `run:` stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// The text for `sh -c`, where `${needs.X}` and `${outputs.X}` are still to be replaced and `$${` stands for `${`.
    pub command: String,
    /// Files of the pipeline's folder that it reads: relative names, globs expanded.
    pub files: Vec<stages_core::Source>,
    /// Its outputs: name to file name in its folder.
    pub outputs: BTreeMap<String, String>,
    /// The folders of inputs that are collected from a matrix, by port, in the order of the inputs: `seed=1`. Part of the key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub points: BTreeMap<String, Vec<String>>,
    /// Variables of its environment, part of the key.
    pub env: BTreeMap<String, String>,
    /// Names of variables passed on from outside, not part of the key.
    pub secrets: Vec<String>,
}

/// An output of another stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputRef {
    /// The index of its node in [`Pipeline::nodes`].
    pub node: usize,
    /// The output's name.
    pub output: String,
}

/// What a stage asks of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// Threads; the engine shares the cores out where it is not said.
    pub threads: Option<usize>,
    /// Memory in bytes.
    pub memory: Option<u64>,
}

/// A place in a file: line and column from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}
