//! A pipeline in which sources are replaced by versions of themselves, and training by that of the first run.

use super::environment::{self, Ranges};
use super::sources::{Source, Version};
use runner_engine::{Made, sources};
use runner_pipeline::{Earlier, Pipeline, Work, graph_of};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The parts of a pipeline that are replaced in every version.
pub(crate) struct Replaced {
    /// The training stages, whose outputs are taken from the first run.
    pub pinned: BTreeSet<usize>,
    /// The date ranges of environments, by node.
    pub ranges: BTreeMap<usize, Ranges>,
}

impl Replaced {
    /// Returns the pipeline with these versions of its sources.
    pub(crate) fn pipeline(
        &self,
        pipeline: &Pipeline,
        made: &BTreeMap<usize, Made>,
        versions: &[(&Source, Version)],
    ) -> Pipeline {
        let mut replaced = pipeline.clone();
        let nodes = &mut replaced.nodes;
        for (source, version) in versions {
            let node = &mut nodes[source.node];
            match version {
                Version::Output { .. } => {}
                Version::Earlier { port, place, digest } => {
                    let earlier = node.earlier.get_mut(port).and_then(|earlier| earlier.get_mut(*place));
                    earlier.into_iter().for_each(|earlier| earlier.digest = *digest);
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
                    Work::Kind { .. } => {
                        let files = sources(node).unwrap_or_default().into_iter().enumerate();
                        let new = |(i, file)| match changed.iter().find(|(place, _)| *place == i) {
                            Some((_, new)) => new.clone(),
                            None => Some(file),
                        };
                        node.sources = Some(files.filter_map(new).collect());
                    }
                },
            }
        }
        for (&node, ranges) in &self.ranges {
            if let Work::Kind { config, .. } = &mut nodes[node].work {
                *config = environment::with_ranges(config, ranges).into();
            }
        }
        for node in nodes {
            for (port, needs) in &mut node.needs {
                let pinned: Vec<Earlier> = needs
                    .iter()
                    .filter(|need| self.pinned.contains(&need.node))
                    .filter_map(|need| {
                        let digest = *made.get(&need.node)?.1.get(&need.output)?;
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
        replaced.graph = graph_of(&replaced.nodes);
        (replaced.promote, replaced.notify, replaced.track) = (None, Vec::new(), Vec::new());
        replaced
    }
}
