//! Runs a pipeline for its outputs.

use super::overlay::{Made, Overlay};
use super::sources::{Source, Version};
use cache::{HitCache, Store};
use runner_engine::executor::WorkerProcess;
use runner_engine::{self as engine, Control, Event, Failure, Options, StageStatus};
use runner_pipeline::Pipeline;
use std::collections::{BTreeMap, BTreeSet};

/// A callback for short progress messages.
pub type Progress<'a> = dyn FnMut(&str) + 'a;

/// A run of some stages.
pub struct Run {
    /// The actions and outputs of the stages that succeeded, by node.
    pub made: BTreeMap<usize, Made>,
    /// The status of the stages that succeeded, and their duration in seconds, by node.
    pub ended: BTreeMap<usize, (StageStatus, f64)>,
    /// The stages that failed, with the reason; without those skipped because of them.
    pub failed: Vec<(usize, String)>,
    /// The hints on what failed, where there are any.
    pub hints: BTreeMap<usize, String>,
}

impl Run {
    /// Runs the nodes in `store`; after a failure the others continue.
    pub fn new(
        pipeline: &Pipeline,
        chosen: &[usize],
        store: &Store,
        options: &Options,
        control: &Control,
        progress: &mut Progress<'_>,
    ) -> Result<Self, Failure> {
        let executor = WorkerProcess::new(store, crate::registry::FILE_TYPES)
            .map_err(|err| Failure::caused("cannot determine the path of this program", &err))?;
        let options = Options {
            keep_going: true,
            ..options.clone()
        };
        let nodes: BTreeMap<&str, usize> =
            chosen.iter().map(|&i| (pipeline.nodes[i].id.as_str(), i)).collect();
        let mut run = Self {
            made: BTreeMap::new(),
            ended: BTreeMap::new(),
            failed: Vec::new(),
            hints: BTreeMap::new(),
        };
        let summary = engine::run(
            &engine::Run {
                pipeline,
                chosen,
                store,
                executor: &executor,
                options: &options,
                control,
            },
            &HitCache::default(),
            &mut |events| {
                for event in events {
                    match event.event {
                        Event::StageStarted { stage, .. } => progress(&format!("{stage} runs")),
                        Event::StageFinished {
                            stage,
                            key,
                            status,
                            seconds,
                            outputs,
                            error,
                            hint,
                            ..
                        } => match (status, nodes.get(stage.as_str())) {
                            (StageStatus::Cached | StageStatus::Ran, Some(&node)) => {
                                run.ended.insert(node, (status, seconds));
                                if let Some(key) = key {
                                    run.made.insert(
                                        node,
                                        (
                                            key,
                                            outputs
                                                .iter()
                                                .map(|(name, digest)| (name.clone(), *digest))
                                                .collect(),
                                        ),
                                    );
                                }
                            }
                            (StageStatus::Failed, Some(&node)) => {
                                run.failed.push((node, error.unwrap_or_default()));
                                run.hints.extend(hint.map(|hint| (node, hint)));
                            }
                            _ => {}
                        },
                        _ => {}
                    }
                }
            },
        );
        if control.cancel.is_cancelled() {
            return Err(Failure::new(runner_engine::exit::INTERRUPTED, "interrupted"));
        }
        if summary.machine_failed {
            let why = run.failed.first().map_or("a stage failed", |(_, why)| why.as_str());
            return Err(Failure::machine(why));
        }
        Ok(run)
    }

    /// Records in `overlay` the outputs of nodes that the change does not reach, so that they are hits, and
    /// the versions of sources that are outputs.
    pub fn lend(
        &self,
        nodes: &BTreeSet<usize>,
        versions: &[(&Source, Version)],
        overlay: &Overlay<'_>,
    ) -> Result<(), Failure> {
        for &i in nodes {
            let Some((key, outputs)) = self.made.get(&i) else {
                continue;
            };
            let Some(mut record) = overlay.base().recorded(*key)? else {
                continue;
            };
            record.outputs = outputs.clone();
            record.log = None;
            for (name, digest) in &mut record.outputs {
                let version = versions.iter().find(|(source, _)| source.is(i, name));
                match version {
                    Some((_, Version::Output { digest: other })) => *digest = *other,
                    _ => overlay.artifact(*digest)?,
                }
            }
            overlay.store.put_action(&record)?;
        }
        Ok(())
    }
}
