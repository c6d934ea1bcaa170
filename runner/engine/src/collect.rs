//! The outputs of a run of some stages, without a record of the run.

use crate::executor::WorkerProcess;
use crate::{Control, Event, Failure, Options, Run, StageStatus, exit, scheduler};
use cache::{ActionKey, ArtifactDigest, Store};
use runner_pipeline::Pipeline;
use stages_core::typed_output::FileType;
use std::collections::BTreeMap;

/// A callback for short progress messages.
pub type Progress<'a> = dyn FnMut(&str) + 'a;

/// The action key of a stage, and its outputs.
pub type Made = (ActionKey, BTreeMap<String, ArtifactDigest>);

/// The outcomes of some stages.
#[derive(Default)]
pub struct Collected {
    /// The actions and outputs of the stages that succeeded, by node.
    pub made: BTreeMap<usize, Made>,
    /// The status of the stages that succeeded, and their duration in seconds, by node.
    pub ended: BTreeMap<usize, (StageStatus, f64)>,
    /// The stages that failed, with the reason; without those skipped because of them.
    pub failed: Vec<(usize, String)>,
    /// The hints on what failed, where there are any.
    pub hints: BTreeMap<usize, String>,
}

impl Collected {
    /// The outputs of a node, by name.
    pub fn outputs(&self, node: usize) -> impl Iterator<Item = (&String, ArtifactDigest)> {
        let outputs = self.made.get(&node).into_iter().flat_map(|(_, outputs)| outputs);
        outputs.map(|(name, digest)| (name, *digest))
    }

    /// Runs the nodes in `store`; after a failure the others continue. `file_types` check what programs
    /// write.
    ///
    /// # Errors
    /// When the run is interrupted, or the machine or the store fails.
    pub fn run(
        pipeline: &Pipeline,
        chosen: &[usize],
        store: &Store,
        file_types: &'static [FileType],
        options: &Options,
        control: &Control,
        progress: &mut Progress<'_>,
    ) -> Result<Self, Failure> {
        let executor = WorkerProcess::new(store, file_types)
            .map_err(|err| Failure::caused("cannot determine the path of this program", &err))?;
        let options = Options {
            keep_going: true,
            ..options.clone()
        };
        let nodes: BTreeMap<&str, usize> =
            chosen.iter().map(|&i| (pipeline.nodes[i].id.as_str(), i)).collect();
        let mut collected = Self::default();
        let run = Run {
            pipeline,
            chosen,
            store,
            executor: &executor,
            others: &BTreeMap::new(),
            options: &options,
            control,
        };
        let summary = scheduler::run(&run, None, &mut |events| {
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
                            collected.ended.insert(node, (status, seconds));
                            let outputs = outputs.iter().map(|(name, digest)| (name.clone(), *digest));
                            collected.made.extend(key.map(|key| (node, (key, outputs.collect()))));
                        }
                        (StageStatus::Failed, Some(&node)) => {
                            collected.failed.push((node, error.unwrap_or_default()));
                            collected.hints.extend(hint.map(|hint| (node, hint)));
                        }
                        _ => {}
                    },
                    _ => {}
                }
            }
        });
        if control.cancel.is_cancelled() {
            return Err(Failure::new(exit::INTERRUPTED, "interrupted"));
        }
        if summary.machine_failed {
            let why = collected
                .failed
                .first()
                .map_or("a stage failed", |(_, why)| why.as_str());
            return Err(Failure::machine(why));
        }
        Ok(collected)
    }
}
