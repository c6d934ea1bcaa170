//! A run as read from its event log.

use super::ResolvedStage;
use cache::{ActionKey, ArtifactDigest, BlobRef, Outputs};
use chrono::{DateTime, Utc};
use runner_engine::{LookaheadVerdict, RunStatus, StageStatus, stamp};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

/// A run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// Its id, which sorts by time.
    pub id: String,
    /// Its directory.
    #[serde(skip)]
    pub dir: PathBuf,
    /// The pipeline's name.
    pub pipeline: String,
    /// The pipeline file.
    pub file: PathBuf,
    /// The parameters as resolved.
    pub params: BTreeMap<String, Value>,
    /// Name and version of the program.
    pub program: String,
    /// The night of the pipeline's schedule that it is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub night: Option<String>,
    /// Its status.
    pub status: RunStatus,
    /// The start time.
    #[serde(with = "stamp")]
    pub started: DateTime<Utc>,
    /// Its duration in seconds; up to its last event if it did not end.
    pub seconds: f64,
    /// Its stages in topological order.
    pub stages: Vec<StageRun>,
    /// The outcome of the check for look-ahead that followed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lookahead: Option<LookaheadVerdict>,
    /// The number of lines of its event log that do not match their checksum and are left out, and its
    /// `pipeline.json` if that does not.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub damaged: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A stage of a run. The fields of the resolved stage are empty if `pipeline.json` is missing.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StageRun {
    /// The resolved stage.
    #[serde(flatten, serialize_with = "of_pipeline", deserialize_with = "unknown")]
    pub of: Arc<ResolvedStage>,
    /// Its action key, once known.
    pub key: Option<ActionKey>,
    /// Its final status; `None` while it is waiting or running, and in a run that was killed.
    pub status: Option<StageStatus>,
    /// True if its action began in this run.
    pub started: bool,
    /// The reason why it was not cached.
    pub reason: Option<String>,
    /// Its duration in this run, in seconds.
    pub seconds: f64,
    /// The duration of its action when that was computed, in seconds.
    pub computed_seconds: Option<f64>,
    /// Its peak resident memory in bytes, when it was computed.
    pub peak_memory: Option<u64>,
    /// Its output artifacts, by name.
    pub outputs: Outputs,
    /// Its log.
    pub log: Option<BlobRef>,
    /// The reason why it failed or was skipped.
    pub error: Option<String>,
    /// A hint on the error.
    pub hint: Option<String>,
    /// Memo hits and lookups.
    pub memo: Option<(u64, u64)>,
    /// The message of its last progress event.
    pub doing: Option<String>,
    /// The metrics that it reported in this run, by name, in order. Empty if it was cached: its `metrics`
    /// output has them.
    pub metrics: BTreeMap<String, Vec<Metric>>,
}

impl StageRun {
    /// A stage that has not started.
    pub fn new(of: Arc<ResolvedStage>) -> Self {
        Self { of, ..Self::default() }
    }

    /// The last value of each metric that it reported in this run, if finite.
    pub fn last_metrics(&self) -> LastMetrics {
        let last = self
            .metrics
            .iter()
            .filter_map(|(name, values)| Some((name.clone(), values.last()?.value)));
        last.filter(|(_, value)| value.is_finite()).collect()
    }
}

/// The result of a stage alone, of a `stage_finished` event or of an outcome in the index.
#[derive(Deserialize)]
pub(crate) struct StageEnd {
    #[serde(alias = "id")]
    pub stage: String,
    pub key: Option<ActionKey>,
    pub status: Option<StageStatus>,
}

/// The last value of each metric of a stage.
pub type LastMetrics = BTreeMap<String, f64>;

impl Deref for StageRun {
    type Target = ResolvedStage;

    fn deref(&self) -> &ResolvedStage {
        &self.of
    }
}

/// Serialises a stage without the output types, since `outputs` are the digests.
fn of_pipeline<S: Serializer>(stage: &ResolvedStage, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("id", &stage.id)?;
    map.serialize_entry("stage", &stage.stage)?;
    map.serialize_entry("point", &stage.point)?;
    map.serialize_entry("kind", &stage.kind)?;
    map.serialize_entry("version", &stage.version)?;
    map.serialize_entry("config", &stage.config)?;
    map.serialize_entry("needs", &stage.needs)?;
    map.serialize_entry("types", &stage.types)?;
    map.end()
}

/// The stage of the pipeline, which the serialised form does not have in full.
fn unknown<'de, D: Deserializer<'de>>(_: D) -> Result<Arc<ResolvedStage>, D::Error> {
    Ok(Arc::default())
}

/// A metric's value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// The step.
    pub step: u64,
    /// The value; NaN if it was not finite.
    pub value: f64,
    /// The time of the report, in seconds since the start of the run.
    pub seconds: f64,
}

impl Run {
    /// The stage with this id.
    pub fn stage(&self, id: &str) -> Option<&StageRun> {
        self.stages.iter().find(|stage| stage.id == id)
    }

    /// The stages that were computed in this run, with their keys.
    pub fn computed(&self) -> impl Iterator<Item = (ActionKey, &StageRun)> {
        let ran = self
            .stages
            .iter()
            .filter(|stage| stage.status == Some(StageStatus::Ran));
        ran.filter_map(|stage| Some((stage.key?, stage)))
    }

    /// The ids of the earlier runs whose artifacts its stages use.
    pub fn earlier_runs(&self) -> impl Iterator<Item = &str> {
        let needs = self.stages.iter().flat_map(|stage| stage.needs.values().flatten());
        needs.filter_map(|need| Some(need.split_once('/')?.0))
    }

    /// The error of the first stage that failed, with the stage.
    pub fn first_error(&self) -> Option<String> {
        let failed = self
            .stages
            .iter()
            .find(|stage| stage.status == Some(StageStatus::Failed));
        failed.map(|stage| format!("{}: {}", stage.id, stage.error.as_deref().unwrap_or("failed")))
    }

    /// The number of stages with this status.
    pub fn count(&self, status: StageStatus) -> usize {
        self.stages.iter().filter(|stage| stage.status == Some(status)).count()
    }

    /// The stage and the output name of an artifact.
    pub fn origin(&self, digest: ArtifactDigest) -> Option<(&StageRun, &str)> {
        self.stages.iter().find_map(|stage| {
            let output = stage.outputs.iter().find(|(_, found)| **found == digest);
            output.map(|(name, _)| (stage, name.as_str()))
        })
    }
}
