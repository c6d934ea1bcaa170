//! Spark lines: a curve as a small drawing without axes.

use cache::{Artifact, Store};
use runner_history::figures::{Curve, curves_of};
use stages_core::table as columns;

/// The size of a drawing, in pixels.
const WIDTH: f64 = 96.0;
const HEIGHT: f64 = 24.0;

/// The maximum number of points of a drawing.
const POINTS: usize = 96;

/// The metrics of a training that stand for it, the first that it has.
const LEARNING: [&str; 3] = ["charts/episodic_return", "validation/return_greedy", "charts/reward"];

/// The curve that stands for an artifact: the value of the policy's first account in a trajectory, or the
/// returns in the metrics of a training. `None` if it has neither.
pub fn spark_curve(store: &Store, artifact: &Artifact) -> Option<Vec<f64>> {
    if let Some(entry) = artifact.entry("trajectory.parquet") {
        let blob = store.blob(entry.blob).ok()?;
        let table = columns::columns_from_parquet(blob, &["strategy", "path", "episode", "nav"]).ok()?;
        let strategies = columns::texts(&table, "strategy").ok()?;
        let path = columns::floats(&table, "path").ok()?;
        let episode = columns::floats_or_nan(&table, "episode").unwrap_or_default();
        let values = columns::floats_or_nan(&table, "nav").ok()?;
        let is_first = |i: &usize| {
            strategies.value(*i) == strategies.value(0)
                && path.value(*i) == 0.0
                && episode.get(*i).is_none_or(|episode| *episode <= 0.0)
        };
        let points: Vec<f64> = (0..table.num_rows()).filter(is_first).map(|i| values[i]).collect();
        return (points.len() > 1).then_some(points);
    }
    let curves = curves_of(artifact, store)?;
    let curve = |name: &str| curves.get(name).filter(|curve: &&Curve| curve.len() > 1);
    let curve = LEARNING.iter().find_map(|name| curve(name))?;
    Some(curve.iter().map(|point| point.1).collect())
}

/// A curve as an SVG file that suits light and dark pages.
pub fn spark_svg(values: &[f64]) -> String {
    let bucket = values.len().div_ceil(POINTS).max(1);
    let points: Vec<f64> = values
        .chunks(bucket)
        .filter_map(|chunk| chunk.iter().copied().rfind(|value| value.is_finite()))
        .collect();
    let low = points.iter().copied().fold(f64::INFINITY, f64::min);
    let high = points.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let span = if high > low { high - low } else { 1.0 };
    let at = |(i, value): (usize, &f64)| {
        let x = 2.0 + (WIDTH - 4.0) * i as f64 / (points.len().max(2) - 1) as f64;
        format!("{x:.1} {:.1}", HEIGHT - 3.0 - (HEIGHT - 6.0) * (value - low) / span)
    };
    let places: Vec<String> = points.iter().enumerate().map(at).collect();
    // The colour has contrast on white and on dark.
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 \
        {WIDTH} \
        {HEIGHT}\"><path d=\"{}{}\" fill=\"none\" stroke=\"#2b8fd6\" stroke-width=\"1.6\" \
        stroke-linejoin=\"round\"/></svg>\n",
        if places.is_empty() { "" } else { "M" },
        places.join("L")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spark_line_spans_its_box_and_leaves_out_what_is_not_finite() {
        let svg = spark_svg(&[1.0, f64::NAN, 3.0]);
        assert!(svg.contains("d=\"M2.0 21.0L94.0 3.0\""), "{svg}");
        let long: Vec<f64> = (0..10_000).map(f64::from).collect();
        assert!(spark_svg(&long).len() < 1_500);
        assert!(spark_svg(&[]).contains("d=\"\""));
    }
}
