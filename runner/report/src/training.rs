//! Learning curves and the split of training time.

use super::chart::{Axis, Series, lines, number, split};
use super::html::{escape, table};
use cache::Store;
use runner_engine::StageStatus;
use runner_history::{self as history, StageRun, figures};
use std::collections::BTreeMap;
use std::path::Path;

/// What people look for first comes first.
pub(crate) const FIRST: [&str; 4] = [
    "charts/episodic_return",
    "losses/explained_variance",
    "losses/entropy",
    "losses/approx_kl",
];

/// The section of a training stage; empty for other stages.
pub(super) fn section(stage: &StageRun, runs: &Path, store: &Store) -> String {
    if !stage.kind.starts_with("train/") {
        return String::new();
    }
    let title = format!("<h2>Training: {}</h2>\n", escape(&stage.id));
    let Some(series) = figures::curves(stage, store) else {
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
        let series = Series::line(name, points.to_vec());
        lines(name, &[series], Axis::Steps, 220.0)
    };
    for name in FIRST {
        if let Some(points) = series.get(name) {
            out.push_str(&chart(name, points));
        }
    }
    for (name, points) in &series {
        if !FIRST.contains(&name.as_str()) && points.len() > 1 {
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
