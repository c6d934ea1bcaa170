//! The nodes of jobs: those of the pipeline with the settings of a trial, where their content is not that of
//! a node that the run has already.

use cache::{KeyHasher, canonical_json};
use runner_engine::Failure;
use runner_pipeline::{InputRef, Node, Pipeline, Work};
use serde_json::{Value, json};
use stages_core::AnyStage;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The digest of a node's content: its stage and work, and the contents of all that it needs.
type Content = [u8; 32];

/// Loads the pipeline with further settings, as `--set` takes them.
pub type Load<'a> = dyn Fn(&[String]) -> Result<Pipeline, Failure> + Sync + 'a;

/// A pipeline with the contents of its nodes.
pub(crate) struct Shaped {
    pub pipeline: Pipeline,
    /// The digest of each node's own work.
    works: Vec<Content>,
    contents: Vec<Content>,
}

/// A value that replaces one of a configuration.
#[derive(Clone, Debug)]
pub(crate) struct Patch {
    /// The stage.
    pub stage: String,
    /// The keys that lead to the value below `with:`.
    pub path: Vec<String>,
    pub value: Value,
}

impl Shaped {
    pub(crate) fn new(pipeline: Pipeline) -> Self {
        let works: Vec<Content> = pipeline.nodes.iter().map(work).collect();
        let contents = contents(&pipeline, &works);
        Self {
            pipeline,
            works,
            contents,
        }
    }

    /// The content of a node.
    pub(crate) fn content(&self, node: usize) -> Content {
        self.contents[node]
    }

    /// The nodes of these stages.
    pub(crate) fn of_stages<'s>(&self, stages: impl IntoIterator<Item = &'s str>) -> Vec<usize> {
        let stages: BTreeSet<&str> = stages.into_iter().collect();
        let nodes = self.pipeline.nodes.iter().enumerate();
        nodes
            .filter(|(_, node)| stages.contains(node.stage.as_str()))
            .map(|(i, _)| i)
            .collect()
    }

    /// The pipeline with values of configurations replaced.
    ///
    /// # Errors
    /// If a stage is no stage kind of this program, or refuses the value.
    pub(crate) fn patched(&self, patches: &[Patch]) -> Result<Self, Failure> {
        let (mut pipeline, mut works) = (self.pipeline.clone(), self.works.clone());
        for (node, own) in pipeline.nodes.iter_mut().zip(&mut works) {
            let of_node: Vec<&Patch> = patches.iter().filter(|patch| patch.stage == node.stage).collect();
            if of_node.is_empty() {
                continue;
            }
            let Work::Kind { kind, config } = &mut node.work else {
                return Err(Failure::usage(format!(
                    "the search sets `{}.with.{}`, and `{}` is a program",
                    node.stage,
                    of_node[0].path.join("."),
                    node.stage
                ))
                .hint("let its command read a parameter, and name that parameter"));
            };
            let mut with = Value::clone(config);
            for patch in of_node {
                put(&mut with, &patch.path, patch.value.clone());
            }
            let wrong = |problem: stages_core::ConfigProblem| {
                Failure::usage(format!("`{}`: `{}`: {}", node.id, problem.field, problem.message))
            };
            *config = kind.resolve(with).map_err(wrong)?;
            *own = work(node);
        }
        let contents = contents(&pipeline, &works);
        Ok(Self {
            pipeline,
            works,
            contents,
        })
    }
}

fn put(into: &mut Value, path: &[String], value: Value) {
    match path {
        [] => *into = value,
        [key, rest @ ..] => {
            if !into.is_object() {
                *into = json!({});
            }
            put(&mut into[key.as_str()], rest, value);
        }
    }
}

fn work(node: &Node) -> Content {
    let work = match &node.work {
        Work::Kind { kind, config } => json!([kind.name(), &**config]),
        Work::Command(command) => json!(["run", &**command, command.key_config()]),
    };
    let mut hasher = KeyHasher::new("runner 2026-11 search node v1")
        .field(&node.stage)
        .field(canonical_json(&json!(node.point)))
        .field(canonical_json(&work));
    for (port, earlier) in &node.earlier {
        hasher = hasher.field(port);
        for earlier in earlier {
            hasher = hasher.field(earlier.digest.as_bytes());
        }
    }
    *hasher.action_key().as_bytes()
}

fn contents(pipeline: &Pipeline, works: &[Content]) -> Vec<Content> {
    let mut contents: Vec<Content> = Vec::with_capacity(works.len());
    for (node, work) in pipeline.nodes.iter().zip(works) {
        let mut hasher = KeyHasher::new("runner 2026-11 search content v1").field(work);
        for (port, needs) in &node.needs {
            hasher = hasher.field(port);
            for need in needs {
                hasher = hasher.field(contents[need.node]).field(&need.output);
            }
        }
        contents.push(*hasher.action_key().as_bytes());
    }
    contents
}

/// The nodes of a run, and where the next ones go.
pub(crate) struct Placed {
    base: Arc<Shaped>,
    /// The nodes of the base pipeline by content.
    of_base: HashMap<Content, usize>,
    /// The nodes that run, by content.
    placed: HashMap<Content, usize>,
    /// The number of nodes of the run.
    count: usize,
    /// The ids of the nodes that were added, from `base`'s number on.
    ids: Vec<String>,
    /// The nodes to add.
    pub added: Vec<Node>,
    /// The nodes of the base pipeline to start.
    pub chosen: Vec<usize>,
}

/// The axes that name the nodes of a job, from those that differ least from the file's own: a node has the
/// first axes whose pipeline has it.
pub(crate) struct Named<'a> {
    pub pipeline: &'a Shaped,
    pub axes: BTreeMap<String, Value>,
}

impl Placed {
    pub(crate) fn new(base: Arc<Shaped>) -> Self {
        let of_base = base.contents.iter().copied().zip(0..).collect();
        Self {
            count: base.pipeline.nodes.len(),
            of_base,
            placed: HashMap::new(),
            ids: Vec::new(),
            added: Vec::new(),
            chosen: Vec::new(),
            base,
        }
    }

    /// The index of the next node to add.
    pub(crate) fn next(&self) -> usize {
        self.count
    }

    /// The id of a node of the run.
    pub(crate) fn id(&self, node: usize) -> &str {
        let nodes = &self.base.pipeline.nodes;
        match nodes.get(node) {
            Some(of_base) => &of_base.id,
            None => &self.ids[node - nodes.len()],
        }
    }

    /// Places the nodes of a pipeline and all that they need, and returns all of them with their indices in
    /// the run.
    pub(crate) fn place(
        &mut self,
        names: &[Named<'_>],
        nodes: &[usize],
        is_kept: bool,
    ) -> BTreeMap<usize, usize> {
        let Some(last) = names.last() else {
            return BTreeMap::new();
        };
        let pipeline = &last.pipeline.pipeline;
        let mut indices: BTreeMap<usize, usize> = BTreeMap::new();
        for i in pipeline.graph.upstream(nodes.iter().copied()) {
            let content = last.pipeline.content(i);
            let index = match (self.placed.get(&content), self.of_base.get(&content)) {
                (Some(&index), _) => index,
                (None, Some(&index)) => {
                    self.chosen.push(index);
                    index
                }
                (None, None) => {
                    let is_of = |named: &&Named<'_>| named.pipeline.contents.get(i) == Some(&content);
                    let axes = names.iter().find(is_of).map(|named| named.axes.clone());
                    self.added.push(self.node(
                        &pipeline.nodes[i],
                        axes.unwrap_or_default(),
                        &indices,
                        is_kept,
                    ));
                    self.ids.push(self.added[self.added.len() - 1].id.clone());
                    self.count += 1;
                    self.count - 1
                }
            };
            self.placed.insert(content, index);
            indices.insert(i, index);
        }
        indices
    }

    fn node(
        &self,
        of: &Node,
        axes: BTreeMap<String, Value>,
        indices: &BTreeMap<usize, usize>,
        is_kept: bool,
    ) -> Node {
        let mut node = of.clone();
        node.point.extend(axes);
        node.id = runner_pipeline::node_id(&node.stage, &node.point);
        let moved = |need: &InputRef| InputRef {
            node: indices[&need.node],
            output: need.output.clone(),
        };
        for needs in node.needs.values_mut() {
            *needs = needs.iter().map(moved).collect();
        }
        if !is_kept {
            node.register = None;
        }
        node
    }

    /// Places a node of a kind that no stage of the pipeline has.
    pub(crate) fn place_own(&mut self, node: Node) -> usize {
        self.ids.push(node.id.clone());
        self.added.push(node);
        self.count += 1;
        self.count - 1
    }
}

/// The stage kind of a node, if it is one.
pub(crate) fn kind(node: &Node) -> Option<&'static dyn AnyStage> {
    match &node.work {
        Work::Kind { kind, .. } => Some(*kind),
        Work::Command(_) => None,
    }
}
