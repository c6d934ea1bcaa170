//! Learning curves and the split of training time.

use super::chart::{Axis, Series, lines, number, split};
use super::html::{escape, table};
use super::population;
use cache::Store;
use runner_history::figures::{self, Curve, is_time};
use runner_history::{ComputedMetrics, LastMetrics, StageRun};
use std::collections::BTreeMap;

/// The metrics whose charts are shown first.
pub(crate) const FIRST: [&str; 6] = [
    "charts/episodic_return",
    "validation/return_greedy",
    "validation/return_drawn",
    "losses/explained_variance",
    "losses/entropy",
    "losses/approx_kl",
];

/// The section of a training stage; empty for other stages.
pub(super) fn section(stage: &StageRun, computed: &ComputedMetrics, store: &Store) -> String {
    if !stage.kind.starts_with("train/") {
        return String::new();
    }
    let title = format!("<h2>Training: {}</h2>\n", escape(&stage.id));
    let Some(series) = figures::curves(stage, store) else {
        return format!("{title}<p class=\"dim\">No metrics are stored for this stage.</p>\n");
    };
    let mut out = title;
    let times = times(stage, computed);
    let parts: Vec<(String, f64)> = times
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix("time/")?.to_owned(), *value)))
        .collect();
    out.push_str(&split("Time by phase", &parts));
    if let Some(speed) = times.get("charts/SPS") {
        out.push_str(&format!("<p>{} steps per second.</p>\n", number(*speed)));
    }
    let last: Vec<_> = series
        .iter()
        .filter_map(|(name, points)| {
            let (step, value) = points.last()?;
            Some(vec![escape(name), number(*value), number(*step)])
        })
        .collect();
    out.push_str(&learning_curves(&series));
    out.push_str(&population::section(stage, store, series.iter()));
    out.push_str("<details><summary>Last values</summary>");
    out.push_str(&table(&["metric", "value", "step"], &last));
    out.push_str("</details>\n");
    out
}

/// A chart for each metric, the most informative first.
pub fn learning_curves(series: &BTreeMap<String, Curve>) -> String {
    let chart = |name: &str, points: &[(f64, f64)]| {
        let series = Series::line(name, points.to_vec());
        lines(name, &[series], Axis::Steps, 220.0)
    };
    let mut out = String::from("<div class=\"charts\">\n");
    for name in FIRST {
        if let Some(points) = series.get(name) {
            out.push_str(&chart(name, points));
        }
    }
    for (name, points) in series {
        if !FIRST.contains(&name.as_str()) && !population::is_of_a_member(name) && points.len() > 1 {
            out.push_str(&chart(name, points));
        }
    }
    out.push_str("</div>\n");
    out
}

/// The last values of `time/…` and `charts/SPS` from the run that computed the stage.
fn times(stage: &StageRun, computed: &ComputedMetrics) -> LastMetrics {
    let mut metrics = stage.last_metrics();
    metrics.retain(|name, _| is_time(name));
    if metrics.is_empty() {
        metrics = computed.of(stage);
        metrics.retain(|name, _| is_time(name));
    }
    metrics
}
