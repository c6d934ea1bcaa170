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
    /// The run's id, which sorts by time.
    pub id: String,
    /// The run's directory.
    #[serde(skip)]
    pub dir: PathBuf,
    /// The pipeline's name.
    pub pipeline: String,
    /// The pipeline file.
    pub file: PathBuf,
    /// The resolved parameters.
    pub params: BTreeMap<String, Value>,
    /// The name and version of the program.
    pub program: String,
    /// The name of the schedule's night that the run belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub night: Option<String>,
    /// The paper accounts whose night was booked after the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accounts: Vec<String>,
    /// The run's status.
    pub status: RunStatus,
    /// The start time.
    #[serde(with = "stamp")]
    pub started: DateTime<Utc>,
    /// The run's duration in seconds; up to the last event if the run did not end.
    pub seconds: f64,
    /// The run's stages in topological order.
    pub stages: Vec<StageRun>,
    /// The outcome of the look-ahead check that followed the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lookahead: Option<LookaheadVerdict>,
    /// The number of lines of the event log that were left out because they do not match their checksum, plus
    /// one if `pipeline.json` does not match its checksum.
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
    #[serde(flatten, serialize_with = "resolved", deserialize_with = "unknown")]
    pub of: Arc<ResolvedStage>,
    /// The action key, once known.
    pub key: Option<ActionKey>,
    /// The stage's final status; `None` while it is waiting or running, and in a run that was killed.
    pub status: Option<StageStatus>,
    /// True if the stage's action began in this run.
    pub started: bool,
    /// The reason why the stage was not cached.
    pub reason: Option<String>,
    /// The stage's duration in this run, in seconds.
    pub seconds: f64,
    /// The duration of the stage's action when it was computed, in seconds.
    pub computed_seconds: Option<f64>,
    /// The stage's peak resident memory in bytes, when it was computed.
    pub peak_memory: Option<u64>,
    /// The stage's output artifacts, by name.
    pub outputs: Outputs,
    /// The stage's log.
    pub log: Option<BlobRef>,
    /// The reason why the stage failed or was skipped.
    pub error: Option<String>,
    /// A hint on how to fix the error.
    pub hint: Option<String>,
    /// The number of memo hits and the number of memo lookups.
    pub memo: Option<(u64, u64)>,
    /// The message of the stage's last progress event.
    pub doing: Option<String>,
    /// The warnings of the stage in this run, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// The metrics that the stage reported in this run, by name, in order. Empty if the stage was cached: its
    /// `metrics` output then has them.
    pub metrics: BTreeMap<String, Vec<Metric>>,
}

impl StageRun {
    /// Creates a stage that has not started.
    pub fn new(of: Arc<ResolvedStage>) -> Self {
        Self { of, ..Self::default() }
    }

    /// The last value of each metric that the stage reported in this run, if finite.
    pub fn last_metrics(&self) -> LastMetrics {
        let last = self
            .metrics
            .iter()
            .filter_map(|(name, values)| Some((name.clone(), values.last()?.value)));
        last.filter(|(_, value)| value.is_finite()).collect()
    }
}

/// The last value of each metric of a stage.
pub type LastMetrics = BTreeMap<String, f64>;

impl Deref for StageRun {
    type Target = ResolvedStage;

    fn deref(&self) -> &ResolvedStage {
        &self.of
    }
}

/// Serialises a stage without its output types, since `outputs` are the digests.
fn resolved<S: Serializer>(stage: &ResolvedStage, serializer: S) -> Result<S::Ok, S::Error> {
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

/// An empty resolved stage: the serialised form does not have it in full.
fn unknown<'de, D: Deserializer<'de>>(_: D) -> Result<Arc<ResolvedStage>, D::Error> {
    Ok(Arc::default())
}

/// A warning of a stage.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Warning {
    /// The warning, a lowercase fragment.
    pub message: String,
    /// The remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A metric's value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// The step at which the value was reported.
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

    /// The ids of the earlier runs whose artifacts the run's stages use.
    pub fn earlier_runs(&self) -> impl Iterator<Item = &str> {
        let needs = self.stages.iter().flat_map(|stage| stage.needs.values().flatten());
        needs.filter_map(|need| Some(need.split_once('/')?.0))
    }

    /// The id and the error of the first stage that failed.
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

    /// The stage that produced an artifact, and the name of the output.
    pub fn origin(&self, digest: ArtifactDigest) -> Option<(&StageRun, &str)> {
        self.stages.iter().find_map(|stage| {
            let output = stage.outputs.iter().find(|(_, found)| **found == digest);
            output.map(|(name, _)| (stage, name.as_str()))
        })
    }
}
