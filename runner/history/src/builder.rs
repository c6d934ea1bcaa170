//! Builds a run from its events.

use super::{Metric, ResolvedPipeline, ResolvedStage, Run, Settings, StageRun, Warning};
use runner_engine::{DecisionEvent, Event, RunStatus, StageEvent, StageStatus, Stamped};
use serde::Deserialize as _;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Builds a run event by event: from the event log of a run that has ended, or while a run is in progress.
pub struct Builder {
    id: String,
    dir: PathBuf,
    run: Option<Run>,
    index: HashMap<String, usize>,
}

impl Builder {
    /// Creates a builder of the run `id`, whose directory is `dir`.
    pub fn new(id: &str, dir: &Path) -> Self {
        Self {
            id: id.to_owned(),
            dir: dir.to_owned(),
            run: None,
            index: HashMap::new(),
        }
    }

    /// The run so far; `None` when it has no events.
    pub fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    /// Finishes the run, with its resolved stages; `None` when it has no events.
    pub fn finish(mut self, resolved: Option<ResolvedPipeline>) -> Option<Run> {
        self.resolve(resolved);
        self.run
    }

    /// Adds the contents of `pipeline.json` to the stages. Without it, only the stages' names are known.
    pub fn resolve(&mut self, resolved: Option<ResolvedPipeline>) {
        let Some(run) = &mut self.run else { return };
        for stage in resolved.into_iter().flat_map(|pipeline| pipeline.stages) {
            if let Some(&i) = self.index.get(&stage.id) {
                run.stages[i].of = stage;
            }
        }
        for (id, &i) in &self.index {
            if run.stages[i].of.id.is_empty() {
                run.stages[i].of = Arc::new(ResolvedStage {
                    id: id.clone(),
                    stage: id.clone(),
                    ..ResolvedStage::default()
                });
            }
        }
    }

    /// Applies the next event.
    pub fn take(&mut self, stamped: &Stamped) {
        match (&mut self.run, &stamped.event) {
            (Some(run), Event::StagesAdded { resolved, .. }) => {
                for stage in resolved {
                    let of = ResolvedStage::deserialize(stage).unwrap_or_default();
                    self.index.insert(of.id.clone(), run.stages.len());
                    run.stages.push(StageRun::new(Arc::new(of)));
                }
            }
            (Some(run), _) => apply(run, &self.index, stamped),
            (None, _) => self.begin(stamped),
        }
    }

    fn begin(&mut self, stamped: &Stamped) {
        let Event::RunStarted {
            pipeline,
            file,
            params,
            stages,
            program,
            night,
            ..
        } = &stamped.event
        else {
            return;
        };
        self.index = stages.iter().cloned().zip(0..).collect();
        let unknown = Arc::<ResolvedStage>::default();
        let stages = stages.iter().map(|_| StageRun::new(Arc::clone(&unknown))).collect();
        self.run = Some(Run {
            id: self.id.clone(),
            dir: self.dir.clone(),
            pipeline: pipeline.clone(),
            file: file.clone(),
            params: params.clone(),
            program: program.clone(),
            night: night.clone(),
            accounts: Vec::new(),
            status: RunStatus::Running,
            started: stamped.time,
            seconds: 0.0,
            stages,
            lookahead: None,
            damaged: 0,
        });
    }
}

fn apply(run: &mut Run, index: &HashMap<String, usize>, stamped: &Stamped) {
    if let Event::Decided { decision, .. } = &stamped.event {
        // The decision may follow days after the run.
        decided(run, decision);
        return;
    }
    if let Event::Booked { account, .. } = &stamped.event {
        if !run.accounts.contains(account) {
            run.accounts.push(account.clone());
        }
        return;
    }
    let elapsed = (stamped.time - run.started).num_milliseconds() as f64 / 1e3;
    run.seconds = run.seconds.max(elapsed);
    let find = |run, name: &str| stage(run, *index.get(name)?);
    match &stamped.event {
        Event::RunStarted { .. }
        | Event::StagesAdded { .. }
        | Event::Note { .. }
        | Event::Decided { .. }
        | Event::Booked { .. } => {}
        Event::StageStarted {
            stage, key, reason, ..
        } => {
            if let Some(stage) = find(run, stage) {
                stage.key = Some(*key);
                stage.started = true;
                stage.reason = Some(reason.clone());
                stage.status = None;
                stage.metrics.clear();
            }
        }
        Event::Stage { stage, event } => {
            let Some(stage) = find(run, stage) else { return };
            match event {
                StageEvent::Progress { message, .. } => stage.doing = Some(message.clone()),
                StageEvent::Metric { name, step, value } => {
                    stage.metrics.entry(name.clone()).or_default().push(Metric {
                        step: *step,
                        value: *value,
                        seconds: elapsed,
                    });
                }
                StageEvent::Memo { hits, total } => stage.memo = Some((*hits, *total)),
                StageEvent::Warning { message, hint } => stage.warnings.push(Warning {
                    message: message.clone(),
                    hint: hint.clone(),
                }),
                _ => {}
            }
        }
        Event::StageFinished {
            stage,
            key,
            status,
            seconds,
            outputs,
            computed_seconds,
            peak_memory,
            log,
            error,
            hint,
        } => {
            if let Some(stage) = find(run, stage) {
                stage.key = key.or(stage.key);
                stage.status = Some(*status);
                stage.seconds = *seconds;
                stage.outputs.clone_from(outputs);
                stage.computed_seconds = *computed_seconds;
                stage.peak_memory = *peak_memory;
                stage.log = *log;
                stage.error.clone_from(error);
                stage.hint.clone_from(hint);
            }
        }
        Event::LookaheadChecked { verdict, .. } => run.lookahead = Some(verdict.clone()),
        Event::RunFinished { status, seconds, .. } => {
            run.status = *status;
            run.seconds = *seconds;
        }
        Event::DeterminismChecked { .. }
        | Event::StageWaiting { .. }
        | Event::StageRetried { .. }
        | Event::StageHealing { .. } => {}
    }
}

/// Adds a decision as a stage after the run's own stages, replacing an earlier decision.
fn decided(run: &mut Run, decision: &DecisionEvent) {
    let of = ResolvedStage {
        id: decision.stage.clone(),
        stage: decision.stage.clone(),
        kind: decision.kind.clone(),
        version: decision.version,
        config: Settings::Values(decision.config.clone()),
        needs: decision.needs.clone(),
        types: decision.types.clone(),
        ..ResolvedStage::default()
    };
    run.stages.retain(|stage| stage.id != decision.stage);
    run.stages.push(StageRun {
        key: Some(decision.key),
        status: Some(decision.status),
        started: decision.status == StageStatus::Ran,
        seconds: decision.seconds,
        outputs: decision.outputs.clone(),
        ..StageRun::new(Arc::new(of))
    });
}

fn stage(run: &mut Run, i: usize) -> Option<&mut StageRun> {
    run.stages.get_mut(i)
}
