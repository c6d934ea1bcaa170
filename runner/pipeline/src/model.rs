//! A resolved pipeline: every parameter replaced, every matrix expanded, every port connected and checked.

use crate::file::notify::Notify;
use crate::file::search::Search;
use crate::file::track::Track;
use crate::stage::{Command, Earlier};
use crate::task_graph::TaskGraph;
use crate::text::{Checked, Name, Place, checked, some_text};
use cache::ArtifactDigest;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use stages_core::{AnyStage, Provided, Settings, Source};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A pipeline, ready to be planned and run.
#[derive(Clone, Default)]
pub struct Pipeline {
    /// The pipeline's name.
    pub name: String,
    /// The first paragraph of comments in the file. Not part of any key.
    pub description: Option<String>,
    /// The pipeline file.
    pub file: PathBuf,
    /// The absolute path of the file's directory.
    pub base: PathBuf,
    /// The resolved parameters.
    pub params: BTreeMap<String, Value>,
    /// The pipeline's expanded stages, in topological order.
    pub nodes: Vec<Node>,
    /// The dependencies between nodes, by index.
    pub graph: TaskGraph,
    /// The alias that a run moves. Not part of any key.
    pub promote: Option<Promote>,
    /// The messages that are sent when a run has ended. Not part of any key.
    pub notify: Vec<Notify>,
    /// The servers that follow runs. Not part of any key.
    pub track: Vec<Track>,
    /// The settings that are searched; their names are those that `--set` takes.
    pub search: Option<Search>,
}

impl Pipeline {
    /// The absolute path of the pipeline file.
    pub fn path(&self) -> PathBuf {
        self.base.join(self.file.file_name().unwrap_or_default())
    }

    /// Adds nodes after the others. A node needs none that comes after it.
    pub fn extend(&mut self, nodes: Vec<Node>) {
        for node in nodes {
            self.graph.push(node.needs.values().flatten().map(|need| need.node));
            self.nodes.push(node);
        }
    }
}

/// The task graph of expanded nodes.
pub fn graph_of(nodes: &[Node]) -> TaskGraph {
    let needs = |(i, node): (usize, &Node)| {
        let needs = node.needs.values().flatten();
        needs.map(move |need| (i, need.node)).collect::<Vec<_>>()
    };
    TaskGraph::new(nodes.len(), nodes.iter().enumerate().flat_map(needs))
}

/// One stage, or one point of a matrix stage.
#[derive(Clone)]
pub struct Node {
    /// The node's id: `train`, or `train[seed=1]`.
    pub id: String,
    /// The stage's name in the file.
    pub stage: String,
    /// The matrix point, by axis: the stage's own axes and those of its needs that it fans out over.
    pub point: BTreeMap<String, Value>,
    /// The work.
    pub work: Work,
    /// The files outside the store that a stage kind reads, if they are not the ones that its configuration
    /// names.
    pub sources: Option<Vec<Source>>,
    /// The node's inputs, by port.
    pub needs: BTreeMap<String, Vec<InputRef>>,
    /// The node's inputs from earlier runs, by port; they come after the inputs from this pipeline's stages
    /// at the same port.
    pub earlier: BTreeMap<String, Vec<Earlier>>,
    /// The contents of the node's outputs, as far as they are known.
    pub provides: BTreeMap<String, Provided>,
    /// The node's resource requests.
    pub resources: Resources,
    /// The maximum number of retries after a failure.
    pub retries: u32,
    /// The node's time limit.
    pub timeout: Option<Duration>,
    /// The name under which the stage's policy is registered at the end of a run. Not part of the action key.
    pub register: Option<Register>,
    /// The absolute directory of the file that has the stage's `uses:` or `run:`: the stage's paths are
    /// relative to it.
    pub base: Arc<Path>,
    /// The stage's position in the file.
    pub place: Place,
}

impl Node {
    /// Appends artifacts of earlier runs to the node's inputs.
    pub fn add_earlier(&self, inputs: &mut BTreeMap<String, Vec<ArtifactDigest>>) {
        for (port, earlier) in &self.earlier {
            let digests = earlier.iter().map(|earlier| earlier.digest);
            inputs.entry(port.clone()).or_default().extend(digests);
        }
    }
}

/// The `register:` of a stage that makes a policy: `register: NAME`, or `register: { policy: NAME, alias:
/// ALIAS, max_age: 30d }`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Register {
    /// The name under which the policy is registered.
    #[schemars(description = "")]
    pub policy: Name,
    /// An alias that always points to the newest version, such as `challenger`.
    #[schemars(description = "")]
    pub alias: Option<Name>,
    /// The age from which on it may not act: `30d`.
    #[serde(default, deserialize_with = "some_text")]
    #[schemars(with = "Option<String>", extend("pattern" = "^([0-9]+[smhd])+$"))]
    pub max_age: Option<Duration>,
}

/// The block `promote: { policy: NAME, stage: STAGE, alias: ALIAS }`: the alias that a run points to the
/// policy that it registered, depending on a verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Promote {
    /// The name of the policy.
    pub policy: String,
    /// The alias.
    pub alias: String,
    /// The id of the node that registers the policy.
    pub registered: String,
    /// The id of the node whose metrics have the verdict.
    pub verdict: String,
    /// The policies that may be the first.
    pub first: First,
    /// The evidence of a paper account that a policy needs beyond the verdict, if any.
    pub forward: Option<Forward>,
}

/// The policies to which an alias that points to none yet may be given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum First {
    /// Each, whatever its verdict.
    #[default]
    Any,
    /// One whose verdict is better.
    Better,
}

/// The evidence of a paper account: that a candidate earns more than the policy of the alias, night by night,
/// on data that came after both.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Forward {
    /// The paper account, which acts by the alias, with the policy's alias `candidate` beside.
    #[schemars(description = "")]
    pub paper: Name,
    /// The least number of nights.
    #[serde(default = "Forward::nights")]
    #[schemars(default = "Forward::nights", range(min = 1))]
    pub nights: usize,
    /// The probability of promoting a candidate that earns no more.
    #[serde(default = "Forward::level")]
    #[schemars(default = "Forward::level")]
    pub level: f64,
    /// The number of nights after which a candidate without enough evidence is dropped.
    #[serde(default = "Forward::at_most")]
    #[schemars(default = "Forward::at_most", range(min = 1))]
    pub at_most: usize,
}

checked!(Forward);

impl Forward {
    fn nights() -> usize {
        60
    }

    fn level() -> f64 {
        0.05
    }

    fn at_most() -> usize {
        250
    }
}

impl Checked for Forward {
    fn check(self) -> Result<Self, &'static str> {
        if !(self.level > 0.0 && self.level < 1.0) {
            return Err(" has a `level` that is not between 0 and 1\n0.05 is one in twenty");
        }
        match (1..=self.at_most).contains(&self.nights) {
            true => Ok(self),
            false => {
                Err(" asks for more nights than `at_most`, or for none\nraise `at_most`, 250 by default")
            }
        }
    }
}

/// The work of a stage.
#[derive(Clone)]
pub enum Work {
    /// A stage kind with its resolved configuration.
    Kind {
        /// The kind.
        kind: &'static dyn AnyStage,
        /// The stage's configuration, with defaults filled in.
        config: Settings,
    },
    /// An external program; its description is shared with the run's record in the history.
    Command(Arc<Command>),
}

/// An output of another stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputRef {
    /// The index of the producing node in [`Pipeline::nodes`].
    pub node: usize,
    /// The output's name.
    pub output: String,
}

/// The resource requests of a stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// The number of threads; if absent, the engine divides the cores among the stages.
    pub threads: Option<usize>,
    /// The memory in bytes.
    pub memory: Option<u64>,
    /// The number of GPUs, for an executor that assigns them.
    #[serde(default, skip_serializing_if = "stages_core::is_default")]
    pub gpus: u32,
    /// The time that an executor is asked for.
    #[serde(default, skip_serializing_if = "stages_core::is_default")]
    pub time: Option<Duration>,
    /// The name of the executor that runs the stage, or [`HERE`](crate::HERE).
    #[serde(default, skip_serializing_if = "stages_core::is_default")]
    pub executor: Option<String>,
}

/// The name of the executor that is this machine.
pub const HERE: &str = "here";
