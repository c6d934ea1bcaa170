//! Many points of a comparison by their settings: parallel coordinates, and the first figure over each
//! setting.

use crate::search::{Point, parallel_coordinates, scatter};
use runner_history::compare::{Comparison, Group};

/// The number of points from which charts say more than tables.
const FEWEST: usize = 6;
/// The number of settings whose chart is drawn, of those that take several values.
const SETTINGS: usize = 4;

/// The charts of a metric; empty of few points, or where no setting differs.
pub(crate) fn section(comparison: &Comparison, metric: &str) -> String {
    let names: Vec<&str> = comparison.parameters.iter().map(String::as_str).collect();
    if comparison.points.len() < FEWEST || names.is_empty() {
        return String::new();
    }
    let point = |at: usize| {
        let only = Group { points: vec![at] };
        let setting = |name: &&str| match comparison.values(&only, name).join(", ") {
            missing if missing == "-" => String::new(),
            value => value,
        };
        Point {
            settings: names.iter().map(setting).collect(),
            metric: comparison
                .outcome(&only, metric)
                .values
                .first()
                .copied()
                .unwrap_or(f64::NAN),
            name: comparison.points[at].label(),
        }
    };
    let points: Vec<Point> = (0..comparison.points.len()).map(point).collect();
    // Names are short where they stay distinct: `train.with.learning_rate` is `learning_rate`.
    let last = |name: &str| name.rsplit('.').next().unwrap_or(name).to_owned();
    let short: Vec<String> = names
        .iter()
        .map(
            |name| match names.iter().filter(|other| last(other) == last(name)).count() {
                1 => last(name),
                _ => (*name).to_owned(),
            },
        )
        .collect();
    let short: Vec<&str> = short.iter().map(String::as_str).collect();
    let mut out = parallel_coordinates(metric, &short, &points);
    for at in 0..short.len().min(SETTINGS) {
        out.push_str(&scatter(metric, &short, at, &points));
    }
    match out.is_empty() {
        true => out,
        false => format!("<h2>By setting</h2>\n<div class=\"charts\">\n{out}</div>\n"),
    }
}
