//! One chart of a run as an SVG file, for notebooks and documents.

use crate::chart::{Axis, Chart, Series, Unit};
use crate::paths;
use cache::Store;
use runner_engine::{Failure, text};
use runner_history::figures;
use runner_history::{Run, StageRun};
use std::collections::BTreeSet;

/// The charts of an evaluation.
const OF_EVALUATIONS: [&str; 2] = ["equity", "drawdown"];

/// Draws `equity` or `drawdown` of the run's first evaluation, or a metric over the steps of each stage that
/// has it, as a self-contained SVG.
///
/// # Errors
/// Fails if the run has no such chart.
pub fn plot(run: &Run, store: &Store, name: &str) -> Result<String, Failure> {
    let svg = match OF_EVALUATIONS.iter().position(|known| *known == name) {
        Some(at) => {
            let mut stages = run.stages.iter();
            let found = stages.find_map(|stage| paths::equity_and_drawdown(stage, store));
            found.map(|charts| charts[at].svg())
        }
        None => metric(run, store, name).map(|chart| chart.svg()),
    };
    svg.filter(|svg| !svg.is_empty())
        .ok_or_else(|| missing(run, store, name))
}

fn metric(run: &Run, store: &Store, name: &str) -> Option<Chart> {
    let line = |stage: &StageRun| {
        let points = figures::curves(stage, store)?.remove(name)?;
        Some(Series::line(&stage.id, points))
    };
    let series: Vec<Series> = run.stages.iter().filter_map(line).collect();
    (!series.is_empty()).then(|| Chart::new(name, series, Axis::Steps).unit(Unit::of(name)))
}

fn missing(run: &Run, store: &Store, name: &str) -> Failure {
    let mut known: BTreeSet<String> = BTreeSet::new();
    for stage in &run.stages {
        if paths::equity_and_drawdown(stage, store).is_some() {
            known.extend(OF_EVALUATIONS.map(str::to_owned));
        }
        let curves = figures::curves(stage, store).unwrap_or_default();
        let drawn = curves.into_iter().filter(|(_, points)| points.len() > 1);
        known.extend(drawn.map(|(metric, _)| metric));
    }
    let failure = Failure::usage(format!("run {} has no chart `{name}`", run.id));
    match known.is_empty() {
        true => failure.hint("it has no evaluation with a trajectory and no metric over steps"),
        false => failure.hint(format!("it has {}", text::some(known.iter().map(String::as_str), 12))),
    }
}
