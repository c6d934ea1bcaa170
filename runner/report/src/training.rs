//! Learning curves and the split of training time.

use super::chart::{Axis, Series, lines, split};
use super::figure_table::cell;
use super::figures::{Unit, shown};
use super::fold::Fold;
use super::glossary::title;
use super::html::{self, escape, table};
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

/// The part of a training stage, under its id; `None` for other stages.
pub(super) fn section(stage: &StageRun, computed: &ComputedMetrics, store: &Store) -> Option<Fold> {
    if !stage.kind.starts_with("train/") {
        return None;
    }
    let Some(series) = figures::curves(stage, store) else {
        let body = "<p class=\"dim\">No metrics are stored for this stage.</p>\n";
        return Some(Fold::new(&stage.id, "no metrics".to_owned(), body.to_owned()));
    };
    let times = times(stage, computed);
    let mut summary = vec![escape(stage.kind.trim_start_matches("train/"))];
    let steps = series.values().filter_map(|points| points.last()).map(|last| last.0);
    summary.extend(
        steps
            .max_by(f64::total_cmp)
            .map(|steps| format!("{} steps", shown(steps, Unit::Count))),
    );
    if let Some(speed) = times.get("charts/SPS") {
        summary.push(format!("{} a second", shown(speed.round(), Unit::Count)));
    }
    for name in FIRST {
        if let Some((_, value)) = series
            .get(name)
            .and_then(|points| points.last())
            .filter(|_| summary.len() < 5)
        {
            summary.push(format!("{} {}", words(name), cell(*value, Unit::Plain)));
        }
    }
    let parts: Vec<(String, f64)> = times
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix("time/")?.to_owned(), *value)))
        .collect();
    let mut out = learning_curves(&series);
    out.push_str(&population::section(stage, store, series.iter()));
    out.push_str(&split("Time by phase", &parts));
    let last: Vec<_> = series
        .iter()
        .filter_map(|(name, points)| {
            let (step, value) = points.last()?;
            Some(vec![
                escape(name),
                cell(*value, Unit::of(name)),
                shown(*step, Unit::Count),
            ])
        })
        .collect();
    let last = table(&["metric", "value", "step"], &last);
    out.push_str(&html::collapsed("Last values", &last));
    Some(Fold::new(&stage.id, summary.join(", "), out))
}

/// A metric's name in words, without its group.
fn words(name: &str) -> String {
    title(name.rsplit('/').next().unwrap_or(name))
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
