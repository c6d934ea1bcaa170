//! Charts of runs, or of points of a matrix, by settings that are known as text: a metric over one setting,
//! and parallel coordinates of several.

use super::parallel::{self, Axis, Line};
use super::scale::{labels, position};
use super::scatter::{Dot, Scatter};
use runner_pipeline::Values;
use serde_json::Value;
use std::collections::BTreeSet;

/// A run, or a point of a matrix.
pub struct Point {
    /// The value of each setting as text; empty where it does not have the setting.
    pub settings: Vec<String>,
    /// The metric; a point whose metric is not finite is not drawn.
    pub metric: f64,
    /// The name that is shown when the point is pointed at.
    pub name: String,
}

/// The ratio of the largest to the smallest number from which an axis is logarithmic.
const LOGARITHMIC: f64 = 50.0;

/// Parallel coordinates: an axis for each setting and one for the metric, a line for each point. Empty if
/// there is nothing to draw.
pub fn parallel_coordinates(metric: &str, settings: &[&str], points: &[Point]) -> String {
    let scales: Vec<Values> = (0..settings.len()).map(|at| scale(points, at)).collect();
    let axes: Vec<Axis<'_>> = settings
        .iter()
        .zip(&scales)
        .map(|(name, values)| Axis { name, values })
        .collect();
    let values: Vec<Vec<Option<Value>>> = points
        .iter()
        .map(|point| point.settings.iter().map(|text| value(text)).collect())
        .collect();
    let lines: Vec<Line<'_>> = points
        .iter()
        .zip(&values)
        .map(|(point, values)| Line {
            values: values.iter().map(Option::as_ref).collect(),
            objective: point.metric,
            class: "c0 faint",
            title: title(metric, point),
        })
        .collect();
    parallel::drawing(metric, &axes, &lines)
}

/// The metric over the setting of this number. Empty if there is nothing to draw.
pub fn scatter(metric: &str, settings: &[&str], at: usize, points: &[Point]) -> String {
    let scale = scale(points, at);
    let dot = |point: &Point| {
        Some(Dot {
            x: position(&scale, &value(&point.settings[at])?)?,
            y: point.metric,
            colour: 0,
            title: title(metric, point),
        })
    };
    Scatter {
        title: &format!("{metric} by {}", settings[at]),
        height: 220.0,
        maximize: None,
        dots: points.iter().filter_map(dot).collect(),
        labels: labels(&scale),
        best: Vec::new(),
        legend: &[],
    }
    .html()
}

fn title(metric: &str, point: &Point) -> String {
    format!("{}: {metric} {}", point.name, crate::chart::number(point.metric))
}

fn value(text: &str) -> Option<Value> {
    match text.parse::<f64>() {
        _ if text.is_empty() => None,
        Ok(number) if number.is_finite() => Some(Value::from(number)),
        _ => Some(Value::from(text)),
    }
}

/// The axis of a setting: the range of its numbers, or its texts in order.
fn scale(points: &[Point], at: usize) -> Values {
    let texts: BTreeSet<&str> = points.iter().map(|point| point.settings[at].as_str()).collect();
    let values: Vec<Value> = texts.into_iter().filter_map(value).collect();
    let numbers: Vec<f64> = values.iter().filter_map(Value::as_f64).collect();
    let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let high = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match numbers.len() == values.len() && low < high {
        true => Values::Float {
            low,
            high,
            log: low > 0.0 && high / low >= LOGARITHMIC,
            step: None,
        },
        false => Values::Choice(values),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(rate: &str, kind: &str, metric: f64) -> Point {
        Point {
            settings: vec![rate.to_owned(), kind.to_owned()],
            metric,
            name: format!("run {rate} {kind}"),
        }
    }

    #[test]
    fn runs_are_drawn_by_numbers_and_by_words() {
        let points = [
            point("0.0001", "ppo", 1.0),
            point("0.01", "sac", 2.0),
            point("", "ppo", 1.5),
            point("0.001", "ppo", f64::NAN),
        ];
        let names = ["rate", "kind"];
        assert!(matches!(scale(&points, 0), Values::Float { log: true, .. }));
        assert!(matches!(scale(&points, 1), Values::Choice(kinds) if kinds.len() == 2));
        let lines = parallel_coordinates("sharpe", &names, &points);
        assert_eq!(lines.matches("<path").count(), 3, "{lines}");
        assert!(lines.contains("<title>run 0.01 sac: sharpe 2</title>"), "{lines}");
        let dots = scatter("sharpe", &names, 0, &points);
        assert_eq!(dots.matches("<circle").count(), 2, "{dots}");
        assert!(dots.contains(">sharpe by rate<"), "{dots}");
        assert_eq!(parallel_coordinates("sharpe", &names, &[]), "");
        assert_eq!(scatter("sharpe", &names, 1, &[]), "");
    }
}
