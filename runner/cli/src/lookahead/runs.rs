//! Runs a pipeline for its outputs.

use super::overlay::{Made, Overlay};
use super::sources::{Changed, Source};
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
    /// The stages that failed, with the reason; without those skipped because of them.
    pub failed: Vec<(String, String)>,
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
        let executor = WorkerProcess::new(store)
            .map_err(|err| Failure::caused("cannot determine the path of this program", &err))?;
        let options = Options {
            keep_going: true,
            ..options.clone()
        };
        let nodes: BTreeMap<&str, usize> = chosen.iter().map(|&i| (pipeline.nodes[i].id.as_str(), i)).collect();
        let mut run = Self {
            made: BTreeMap::new(),
            failed: Vec::new(),
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
                            outputs,
                            error,
                            ..
                        } => match status {
                            StageStatus::Cached | StageStatus::Ran => {
                                if let (Some(&node), Some(key)) = (nodes.get(stage.as_str()), key) {
                                    run.made.insert(node, (key, BTreeMap::clone(&outputs)));
                                }
                            }
                            StageStatus::Failed => run.failed.push((stage, error.unwrap_or_default())),
                            StageStatus::Skipped => {}
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

    /// Records in `overlay` the outputs of the nodes that the change does not affect, so that they are hits; and the changed output of the source.
    pub fn lend(
        &self,
        pipeline: &Pipeline,
        chosen: &[usize],
        affected: &BTreeSet<usize>,
        source: &Source,
        changed: &Changed,
        overlay: &Overlay<'_>,
    ) -> Result<(), Failure> {
        for &i in chosen {
            if affected.contains(&i) {
                // Artifacts of earlier runs are read again.
                for earlier in pipeline.nodes[i].earlier.values().flatten() {
                    overlay.artifact(earlier.digest)?;
                }
                continue;
            }
            let Some((key, outputs)) = self.made.get(&i) else {
                continue;
            };
            let Some(mut record) = overlay.base().recorded(*key)? else {
                continue;
            };
            record.outputs = outputs.clone();
            record.log = None;
            for (name, digest) in &mut record.outputs {
                match changed.artifact {
                    Some(other) if source.is(i, name) => *digest = other,
                    _ => overlay.artifact(*digest)?,
                }
            }
            overlay.store.put_action(&record)?;
        }
        Ok(())
    }
}
