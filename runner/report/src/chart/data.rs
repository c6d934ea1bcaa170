//! The data of a chart for the script of the page, as JSON.

use super::model::{Axis, Chart, Look};
use crate::figures::Unit;
use runner_engine::text::visible;
use serde_json::{Value, json};

/// The maximum number of points of a line. Longer lines are thinned to the minimum and maximum of each
/// bucket.
const MOST_POINTS: usize = 2000;

/// The data as text that may stand in a `<script>` element.
pub(super) fn json(chart: &Chart, looks: &[Look], shown: &[bool]) -> String {
    let mut xs: Vec<Vec<f64>> = Vec::new();
    let mut place = |x: Vec<f64>| {
        let known = xs.iter().position(|known| *known == x);
        known.unwrap_or_else(|| {
            xs.push(x);
            xs.len() - 1
        })
    };
    let rounded = |values: &mut dyn Iterator<Item = f64>| values.map(short).collect::<Vec<Value>>();
    let series: Vec<Value> = chart
        .series
        .iter()
        .zip(looks)
        .zip(shown)
        .map(|((one, look), shown)| {
            let (points, band) = (thin(&one.points, MOST_POINTS), thin_band(&one.band, MOST_POINTS));
            let mut out = json!({
                "name": visible(&one.name),
                "colour": look.colour,
                "dash": look.dash,
                "width": look.width,
                "show": shown,
                "x": place(points.iter().map(|point| point.0).collect()),
                "y": rounded(&mut points.iter().map(|point| point.1)),
            });
            if !band.is_empty() {
                out["band"] = json!({
                    "x": place(band.iter().map(|at| at.0).collect()),
                    "low": rounded(&mut band.iter().map(|at| at.1)),
                    "high": rounded(&mut band.iter().map(|at| at.2)),
                });
            }
            out
        })
        .collect();
    let data = json!({
        "axis": match chart.axis { Axis::Days => "days", Axis::Steps => "steps" },
        "unit": match chart.unit {
            Unit::Percent => "percent",
            Unit::Money => "money",
            _ => "plain",
        },
        "group": visible(&chart.group),
        "height": chart.height,
        "x": xs.iter().map(|x| differences(x)).collect::<Vec<_>>(),
        "series": series,
    });
    data.to_string().replace('<', "\\u003c")
}

/// A value with five significant digits, which no pixel tells from the value itself; null if it is not
/// finite.
fn short(value: f64) -> Value {
    match format!("{value:.4e}").parse::<f64>() {
        Ok(value) if value.is_finite() && value.fract() == 0.0 && value.abs() < 1e15 => json!(value as i64),
        Ok(value) if value.is_finite() => json!(value),
        _ => Value::Null,
    }
}

/// The first position and the distances of the others, which are short for days; each is kept to a second.
fn differences(x: &[f64]) -> Vec<Value> {
    let unit = 86_400.0;
    let mut before = 0.0;
    x.iter()
        .map(|x| {
            let at = (x * unit).round() / unit;
            let difference = ((at - before) * unit).round() / unit;
            before += difference;
            short_position(difference)
        })
        .collect()
}

fn short_position(value: f64) -> Value {
    match value.fract() == 0.0 && value.abs() < 1e15 {
        true => json!(value as i64),
        false => json!(value),
    }
}

/// The points, of many only the lowest and the highest of each bucket.
pub(super) fn thin(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    if points.len() <= most {
        return points.to_vec();
    }
    let bucket = points.len().div_ceil(most / 2);
    points
        .chunks(bucket)
        .flat_map(|chunk| {
            let low = chunk.iter().enumerate().min_by(|a, b| a.1.1.total_cmp(&b.1.1));
            let high = chunk.iter().enumerate().max_by(|a, b| a.1.1.total_cmp(&b.1.1));
            let mut ends: Vec<_> = low.into_iter().chain(high).collect();
            ends.sort_by_key(|(at, _)| *at);
            ends.dedup_by_key(|(at, _)| *at);
            ends.into_iter().map(|(_, point)| *point).collect::<Vec<_>>()
        })
        .collect()
}

/// The band, of many points the hull of each bucket.
pub(super) fn thin_band(band: &[(f64, f64, f64)], most: usize) -> Vec<(f64, f64, f64)> {
    let bucket = band.len().div_ceil(most / 2).max(1);
    band.chunks(bucket)
        .map(|chunk| {
            let low = chunk.iter().map(|at| at.1).fold(f64::INFINITY, f64::min);
            let high = chunk.iter().map(|at| at.2).fold(f64::NEG_INFINITY, f64::max);
            (chunk[chunk.len() / 2].0, low, high)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::Series;
    use super::super::model::{is_shown, looks};
    use super::*;

    #[test]
    fn data_is_short_and_cannot_leave_its_element() {
        let days = |last: f64| vec![(19_000.0, 1.0), (19_001.0, 1.234_567_8), (19_003.5, last)];
        let band = vec![(19_000.0, 0.5, 2.0), (19_001.0, 0.25, 3.0)];
        let series = vec![
            Series::line("</script>\u{202e}", days(f64::NAN)),
            Series {
                band,
                ..Series::line("b", days(2e7))
            },
        ];
        let chart = Chart::new("t", series, Axis::Days).group("g");
        let text = json(&chart, &looks(&chart.series), &is_shown(&chart.series));
        assert!(!text.contains('<'), "{text}");
        let data: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            data["x"],
            json!([[19000, 1, 2.5], [19000, 1]]),
            "equal positions stand once"
        );
        assert_eq!(
            data["series"][0]["name"], "</script>\\u202e",
            "marks of direction are shown"
        );
        assert_eq!(data["series"][0]["y"], json!([1, 1.2346, null]));
        assert_eq!(
            data["series"][1]["band"],
            json!({ "x": 1, "low": [0.5, 0.25], "high": [2, 3] })
        );
        assert_eq!(data["series"][1]["x"], 0);
    }

    #[test]
    fn thinning_keeps_the_extremes() {
        let mut points: Vec<_> = (0..10_000).map(|i| (f64::from(i), 0.0)).collect();
        points[5_003].1 = 9.0;
        points[7_777].1 = -9.0;
        let thinned = thin(&points, MOST_POINTS);
        assert!(thinned.len() <= MOST_POINTS);
        assert!(thinned.contains(&points[5_003]) && thinned.contains(&points[7_777]));
        assert_eq!(thin(&points[..MOST_POINTS], MOST_POINTS), points[..MOST_POINTS]);
    }
}
