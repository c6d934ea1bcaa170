//! The figures of a stage: final values and learning curves.
//!
//! The figures come from two places. The `metrics` artifact exists for every stage of the families `train`
//! and `evaluate`, cached or not. The run's event log alone has times, and all metrics of a stage that is
//! running or failed.

use super::StageRun;
use cache::{Artifact, ArtifactDigest, Store};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A learning curve: pairs (step, value), with ascending steps.
pub type Curve = Vec<(f64, f64)>;

#[derive(Deserialize)]
struct Line {
    name: String,
    step: u64,
    value: Option<f64>,
}

fn artifact(stage: &StageRun, store: &Store) -> Option<Artifact> {
    store.artifact(*stage.outputs.get("metrics")?).ok()
}

/// The curves of an artifact of metrics; `None` if it has none that can be read.
pub fn curves_of(artifact: &Artifact, store: &Store) -> Option<BTreeMap<String, Curve>> {
    let blob = store.blob(artifact.entry("metrics.jsonl")?.blob).ok()?;
    let mut curves: BTreeMap<String, Curve> = BTreeMap::new();
    for line in blob.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let line: Line = serde_json::from_slice(line).ok()?;
        let point = (line.step as f64, line.value.unwrap_or(f64::NAN));
        curves.entry(line.name).or_default().push(point);
    }
    Some(curves)
}

pub(crate) fn summary_of(artifact: &Artifact) -> BTreeMap<String, f64> {
    let summary = artifact.meta["summary"].as_object();
    summary
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)))
        .collect()
}

/// The curves of a stage's `metrics` artifact; `None` if there is no readable artifact.
pub fn curves(stage: &StageRun, store: &Store) -> Option<BTreeMap<String, Curve>> {
    curves_of(&artifact(stage, store)?, store)
}

/// The summary of a stage's `metrics` artifact; `None` if there is no readable artifact. Costs one small
/// read.
pub fn summary(stage: &StageRun, store: &Store) -> Option<BTreeMap<String, f64>> {
    artifact(stage, store).map(|artifact| summary_of(&artifact))
}

/// The final value of each metric of an artifact of metrics: that of its summary, or else the last of its
/// curve. NaN where it is not finite.
///
/// # Errors
/// If the artifact cannot be read.
pub fn final_values(store: &Store, metrics: ArtifactDigest) -> cache::Result<BTreeMap<String, f64>> {
    let artifact = store.artifact(metrics)?;
    let curves = curves_of(&artifact, store).unwrap_or_default();
    let last = |(name, points): (String, Curve)| Some((name, points.last()?.1));
    let mut values: BTreeMap<String, f64> = curves.into_iter().filter_map(last).collect();
    let summary = artifact.meta["summary"].as_object().into_iter().flatten();
    values.extend(summary.map(|(name, value)| (name.clone(), value.as_f64().unwrap_or(f64::NAN))));
    Ok(values)
}

/// The figures of a stage.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// The final value of each metric, if finite: from the summary, or else the last value of the curve. The
    /// entry `seconds` is the stage's duration when it was computed.
    pub values: BTreeMap<String, f64>,
    /// The metrics that characterise the stage: the summary's metrics without baselines; without a summary,
    /// all metrics except times.
    pub headline: Vec<String>,
    /// The learning curves, by metric.
    pub curves: BTreeMap<String, Curve>,
}

impl Figures {
    /// The figures of a stage; the stage's run must have been read with metrics.
    pub fn of(stage: &StageRun, store: &Store) -> Self {
        let artifact = artifact(stage, store);
        let summary = artifact.as_ref().map(summary_of).unwrap_or_default();
        let mut curves = artifact
            .and_then(|artifact| curves_of(&artifact, store))
            .unwrap_or_default();
        for (name, reported) in &stage.metrics {
            let points = || {
                reported
                    .iter()
                    .map(|metric| (metric.step as f64, metric.value))
                    .collect()
            };
            curves.entry(name.clone()).or_insert_with(points);
        }
        let seconds = stage.computed_seconds.or(stage.status.map(|_| stage.seconds));
        let mut values: BTreeMap<String, f64> =
            seconds.map(|value| ("seconds".to_owned(), value)).into_iter().collect();
        let last = |(name, points): (&String, &Curve)| Some((name.clone(), points.last()?.1));
        values.extend(curves.iter().filter_map(last));
        values.extend(summary.clone());
        values.retain(|_, value| value.is_finite());
        let headline = if summary.is_empty() {
            curves.keys().filter(|name| !is_time(name)).cloned().collect()
        } else {
            summary
                .into_keys()
                .filter(|name| !name.starts_with("baseline/"))
                .collect()
        };
        Self {
            values,
            headline,
            curves,
        }
    }
}

/// True if a metric is a time or a speed. Such metrics differ from run to run and are in no artifact.
pub fn is_time(name: &str) -> bool {
    matches!(name, "charts/SPS" | "charts/IPS") || name.starts_with("time/")
}
