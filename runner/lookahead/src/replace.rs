//! A pipeline whose sources are versions of themselves, and whose training is that of the first run.

use super::environment::{self, Ranges};
use super::sources::{Source, Version};
use cache::ArtifactDigest;
use runner_engine::Made;
use runner_pipeline::{Earlier, Pipeline, TaskGraph, Work};
use serde_json::Value;
use stages_core::{
    AnyStage, ConfigProblem, Context, Given, Outputs, PlanContext, Ports, Provided, RelativeCost, Share,
    Source as File, StageError,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// A stage kind that reads other files than its configuration names.
struct WithFiles {
    kind: &'static dyn AnyStage,
    files: Vec<File>,
}

impl AnyStage for WithFiles {
    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn version(&self) -> u32 {
        self.kind.version()
    }

    fn about(&self) -> &'static str {
        self.kind.about()
    }

    fn ports(&self) -> Ports {
        self.kind.ports()
    }

    fn nondeterministic(&self) -> Option<&'static str> {
        self.kind.nondeterministic()
    }

    fn work_units(&self, config: &Value) -> Option<u64> {
        self.kind.work_units(config)
    }

    fn relative_cost(&self, config: &Value) -> Option<RelativeCost> {
        self.kind.relative_cost(config)
    }

    fn schema(&self) -> Value {
        self.kind.schema()
    }

    fn resolve(&self, with: Value) -> Result<Value, ConfigProblem> {
        self.kind.resolve(with)
    }

    fn key_config(&self, resolved: &Value) -> Value {
        self.kind.key_config(resolved)
    }

    fn check(
        &self,
        resolved: &Value,
        plan: &PlanContext,
    ) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        self.kind.check(resolved, plan)
    }

    fn sources(&self, _: &Value, _: &Path) -> Result<Vec<File>, ConfigProblem> {
        Ok(self.files.clone())
    }

    fn run(&self, resolved: &Value, context: &Context) -> Result<Outputs, StageError> {
        self.kind.run(resolved, context)
    }

    fn cached_share(&self, resolved: &Value, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        self.kind.cached_share(resolved, given)
    }
}

/// A stage kind that reads these files. Stage kinds live as long as the program; a check makes a few hundred
/// of these small ones.
pub fn with_files(kind: &'static dyn AnyStage, files: Vec<File>) -> &'static dyn AnyStage {
    Box::leak(Box::new(WithFiles { kind, files }))
}

/// The parts of a pipeline that every version of it replaces.
pub struct Replaced {
    /// Stages whose outputs are those of the first run: training.
    pub pinned: BTreeSet<usize>,
    /// The ranges of environments, by node.
    pub ranges: BTreeMap<usize, Ranges>,
}

impl Replaced {
    /// The pipeline with these versions of its sources.
    pub fn pipeline(
        &self,
        pipeline: &Pipeline,
        made: &BTreeMap<usize, Made>,
        versions: &[(&Source, Version)],
    ) -> Pipeline {
        let mut nodes = pipeline.nodes.clone();
        for (source, version) in versions {
            let node = &mut nodes[source.node];
            match version {
                Version::Output { .. } => {}
                Version::Earlier { port, place, digest } => {
                    if let Some(earlier) =
                        node.earlier.get_mut(port).and_then(|earlier| earlier.get_mut(*place))
                    {
                        earlier.digest = *digest;
                    }
                }
                Version::Files(changed) => match &mut node.work {
                    Work::Command(command) => {
                        let files = &mut Arc::make_mut(command).files;
                        for (place, file) in changed {
                            if let Some(file) = file {
                                files[*place].path.clone_from(&file.path);
                            }
                        }
                    }
                    Work::Kind { kind, config } => {
                        let mut files: Vec<Option<File>> = kind
                            .sources(config, &node.base)
                            .unwrap_or_default()
                            .into_iter()
                            .map(Some)
                            .collect();
                        for (place, file) in changed {
                            if let Some(old) = files.get_mut(*place) {
                                old.clone_from(file);
                            }
                        }
                        let files = files.into_iter().flatten().collect();
                        *kind = with_files(*kind, files);
                    }
                },
            }
        }
        for (&node, ranges) in &self.ranges {
            if let Work::Kind { config, .. } = &mut nodes[node].work {
                *config = environment::with_ranges(config, ranges);
            }
        }
        for node in &mut nodes {
            for (port, needs) in &mut node.needs {
                let pinned: Vec<Earlier> = needs
                    .iter()
                    .filter(|need| self.pinned.contains(&need.node))
                    .filter_map(|need| {
                        let digest: ArtifactDigest = *made.get(&need.node)?.1.get(&need.output)?;
                        Some(Earlier {
                            name: format!("first/{}", need.output),
                            ty: String::new(),
                            digest,
                        })
                    })
                    .collect();
                if pinned.is_empty() {
                    continue;
                }
                needs.retain(|need| !self.pinned.contains(&need.node));
                node.earlier.entry(port.clone()).or_default().splice(0..0, pinned);
            }
        }
        let edges: Vec<(usize, usize)> = nodes
            .iter()
            .enumerate()
            .flat_map(|(i, node)| node.needs.values().flatten().map(move |need| (i, need.node)))
            .collect();
        Pipeline {
            name: pipeline.name.clone(),
            file: pipeline.file.clone(),
            base: pipeline.base.clone(),
            params: pipeline.params.clone(),
            graph: TaskGraph::new(nodes.len(), edges),
            nodes,
            promote: None,
            notify: Vec::new(),
            track: Vec::new(),
        }
    }
}
