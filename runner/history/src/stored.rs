//! The format in which the index stores a run: the parts that many runs share are separate.

use super::{ResolvedStage, Run, StageRun};
use cache::{ActionKey, BlobRef, Outputs};
use chrono::DateTime;
use runner_engine::{LookaheadVerdict, RunStatus, StageStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A run without its stages.
#[derive(Serialize, Deserialize)]
pub(super) struct Head {
    pub pipeline: String,
    file: PathBuf,
    params: BTreeMap<String, Value>,
    program: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    night: Option<String>,
    status: RunStatus,
    /// In milliseconds since 1970, the precision of events.
    started: i64,
    seconds: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lookahead: Option<LookaheadVerdict>,
}

impl Head {
    pub fn of(run: &Run) -> Self {
        Self {
            pipeline: run.pipeline.clone(),
            file: run.file.clone(),
            params: run.params.clone(),
            program: run.program.clone(),
            night: run.night.clone(),
            status: run.status,
            started: run.started.timestamp_millis(),
            seconds: run.seconds,
            lookahead: run.lookahead.clone(),
        }
    }

    /// The whole run; `seconds` are the durations of its stages.
    pub fn run(
        self,
        id: &str,
        dir: PathBuf,
        template: &Template,
        seconds: impl Iterator<Item = f64>,
    ) -> Option<Run> {
        let mut stages = template.0.clone();
        for (stage, seconds) in stages.iter_mut().zip(seconds) {
            stage.seconds = seconds;
        }
        Some(Run {
            id: id.to_owned(),
            dir,
            pipeline: self.pipeline,
            file: self.file,
            params: self.params,
            program: self.program,
            night: self.night,
            status: self.status,
            started: DateTime::from_timestamp_millis(self.started)?,
            seconds: self.seconds,
            stages,
            lookahead: self.lookahead,
            // A damaged run is not indexed.
            damaged: 0,
        })
    }
}

/// The outcome of a stage without its duration in that run: all fully cached runs have the same.
#[derive(Serialize, Deserialize)]
pub(super) struct StageOutcome {
    pub id: String,
    pub key: Option<ActionKey>,
    pub status: Option<StageStatus>,
    started: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    computed_seconds: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    peak_memory: Option<u64>,
    #[serde(default)]
    outputs: Outputs,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log: Option<BlobRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memo: Option<(u64, u64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    doing: Option<String>,
}

impl StageOutcome {
    pub fn of(stage: &StageRun) -> Self {
        Self {
            id: stage.id.clone(),
            key: stage.key,
            status: stage.status,
            started: stage.started,
            reason: stage.reason.clone(),
            computed_seconds: stage.computed_seconds,
            peak_memory: stage.peak_memory,
            outputs: stage.outputs.clone(),
            log: stage.log,
            error: stage.error.clone(),
            hint: stage.hint.clone(),
            memo: stage.memo,
            doing: stage.doing.clone(),
        }
    }

    fn stage(self, of: ResolvedStage) -> StageRun {
        StageRun {
            of: Arc::new(of),
            key: self.key,
            status: self.status,
            started: self.started,
            reason: self.reason,
            seconds: 0.0,
            computed_seconds: self.computed_seconds,
            peak_memory: self.peak_memory,
            outputs: self.outputs,
            log: self.log,
            error: self.error,
            hint: self.hint,
            memo: self.memo,
            doing: self.doing,
            metrics: BTreeMap::new(),
        }
    }
}

/// The stages of all runs with the same resolution and outcomes, without durations.
pub(super) struct Template(Vec<StageRun>);

impl Template {
    /// `None` if the two do not match.
    pub fn new(resolved: Vec<ResolvedStage>, outcomes: Vec<StageOutcome>) -> Option<Self> {
        let fits = resolved.len() == outcomes.len();
        let stages = outcomes
            .into_iter()
            .zip(resolved)
            .map(|(outcome, of)| outcome.stage(of));
        fits.then(|| Self(stages.collect()))
    }
}
