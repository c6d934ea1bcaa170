//! Learning curves and the split of training time.

use super::chart::{Axis, Series, lines, number, split};
use super::html::{escape, table};
use crate::engine::StageStatus;
use crate::history::{self, StageRun};
use cache::Store;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Deserialize)]
struct Line {
    name: String,
    step: u64,
    value: Option<f64>,
}

/// The series of a `metrics` artifact, by name.
pub(super) fn series(stage: &StageRun, store: &Store) -> Option<BTreeMap<String, Vec<(f64, f64)>>> {
    let artifact = store.artifact(*stage.outputs.get("metrics")?).ok()?;
    let blob = store.blob(artifact.entry("metrics.jsonl")?.blob).ok()?;
    let mut series: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for line in blob.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let line: Line = serde_json::from_slice(line).ok()?;
        series
            .entry(line.name)
            .or_default()
            .push((line.step as f64, line.value.unwrap_or(f64::NAN)));
    }
    Some(series)
}

/// The section of a training stage; empty for other stages.
pub(super) fn section(stage: &StageRun, runs: &Path, store: &Store) -> String {
    if !stage.kind.starts_with("train/") {
        return String::new();
    }
    let title = format!("<h2>Training: {}</h2>\n", escape(&stage.id));
    let Some(series) = series(stage, store) else {
        return format!("{title}<p class=\"dim\">No metrics are stored for this stage.</p>\n");
    };
    let mut out = title;
    let times = times(stage, runs);
    let parts: Vec<(String, f64)> = times
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix("time/")?.to_owned(), *value)))
        .collect();
    out.push_str(&split("Where the time went", &parts));
    if let Some(speed) = times.get("charts/SPS") {
        out.push_str(&format!("<p>{} steps a second.</p>\n", number(*speed)));
    }
    let last: Vec<_> = series
        .iter()
        .filter_map(|(name, points)| {
            let (step, value) = points.last()?;
            Some(vec![escape(name), number(*value), number(*step)])
        })
        .collect();
    out.push_str("<div class=\"charts\">\n");
    let chart = |name: &str, points: &[(f64, f64)]| {
        let series = Series {
            name: name.to_owned(),
            points: points.to_vec(),
        };
        lines(name, &[series], Axis::Steps, 220.0)
    };
    // What people look for first comes first.
    let first = [
        "charts/episodic_return",
        "losses/explained_variance",
        "losses/entropy",
        "losses/approx_kl",
    ];
    for name in first {
        if let Some(points) = series.get(name) {
            out.push_str(&chart(name, points));
        }
    }
    for (name, points) in &series {
        if !first.contains(&name.as_str()) && points.len() > 1 {
            out.push_str(&chart(name, points));
        }
    }
    out.push_str("</div>\n<details><summary>Last values</summary>");
    out.push_str(&table(&["metric", "value", "step"], &last));
    out.push_str("</details>\n");
    out
}

/// The last `time/…` and `charts/SPS` of the run that computed the stage: times are events, and in no artifact.
fn times(stage: &StageRun, runs: &Path) -> BTreeMap<String, f64> {
    let last = |stage: &StageRun| -> BTreeMap<String, f64> {
        stage
            .metrics
            .iter()
            .filter(|(name, _)| name.starts_with("time/") || *name == "charts/SPS")
            .filter_map(|(name, values)| Some((name.clone(), values.last()?.value)))
            .collect()
    };
    let here = last(stage);
    if !here.is_empty() {
        return here;
    }
    let computed = |found: &StageRun| found.key == stage.key && found.status == Some(StageStatus::Ran);
    history::list(runs)
        .unwrap_or_default()
        .iter()
        .rev()
        .find(|run| run.stages.iter().any(computed))
        .and_then(|run| history::load(runs, &run.id).ok())
        .and_then(|run| run.stages.iter().find(|found| computed(found)).map(last))
        .unwrap_or_default()
}
