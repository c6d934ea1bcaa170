//! Parallel coordinates: an axis for each setting and one for the objective, a line for each trial.

use super::scale::{labels, position};
use crate::chart::{WIDTH, cut, figure, number};
use crate::html::escape;
use runner_pipeline::Values;
use std::fmt::Write as _;

/// The maximum number of axes of settings.
const MOST_AXES: usize = 9;
/// The maximum number of labels of an axis.
const MOST_LABELS: usize = 8;
const HEIGHT: f64 = 260.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 18.0;
const SIDE: f64 = 46.0;

/// An axis.
pub(super) struct Axis<'a> {
    /// The setting's short name.
    pub name: &'a str,
    /// The setting's values.
    pub values: &'a Values,
}

/// A line.
pub(super) struct Line<'a> {
    /// The value on each axis; `None` where the trial does not have the setting.
    pub values: Vec<Option<&'a serde_json::Value>>,
    /// The objective.
    pub objective: f64,
    /// The class of the line's colour.
    pub class: &'static str,
    /// The words that are shown when the line is pointed at.
    pub title: String,
}

/// The drawing of all lines, the later over the earlier; empty if there are none.
pub(super) fn drawing(objective: &str, axes: &[Axis<'_>], lines: &[Line<'_>]) -> String {
    let shown = &axes[..axes.len().min(MOST_AXES)];
    let finite = || {
        lines
            .iter()
            .map(|line| line.objective)
            .filter(|value| value.is_finite())
    };
    let (low, high) = (
        finite().fold(f64::INFINITY, f64::min),
        finite().fold(f64::NEG_INFINITY, f64::max),
    );
    if shown.is_empty() || low > high {
        return String::new();
    }
    let x = |axis: usize| SIDE + (WIDTH - 2.0 * SIDE) * axis as f64 / shown.len() as f64;
    let y = |share: f64| HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM);
    let label = format!(
        "Parallel coordinates: {} lines, {} settings, {objective}",
        lines.len(),
        shown.len()
    );
    let mut out = figure(&format!("Settings and {objective}"), HEIGHT, " tabindex=\"0\"", &label);
    for line in lines.iter().filter(|line| line.objective.is_finite()) {
        let share = if high > low {
            (line.objective - low) / (high - low)
        } else {
            0.5
        };
        let places = shown
            .iter()
            .zip(&line.values)
            .map(|(axis, value)| value.and_then(|value| position(axis.values, value)))
            .chain([Some(share)]);
        let mut path = String::new();
        let mut pen_down = false;
        for (axis, place) in places.enumerate() {
            // A trial without a setting has a gap there.
            let Some(place) = place else {
                pen_down = false;
                continue;
            };
            let _ = write!(
                path,
                "{}{:.1} {:.1}",
                if pen_down { 'L' } else { 'M' },
                x(axis),
                y(place)
            );
            pen_down = true;
        }
        let _ = write!(
            out,
            "<path class=\"{}\" d=\"{path}\"><title>{}</title></path>",
            line.class,
            escape(&line.title)
        );
    }
    let mut axis = |at: usize, name: &str, labels: &[(f64, String)]| {
        let (anchor, side) = if at == shown.len() {
            ("end", -4.0)
        } else {
            ("start", 4.0)
        };
        // The names of the outer axes begin and end at the edges.
        let (name_anchor, name_at) = match at {
            0 => ("start", 0.0),
            at if at == shown.len() => ("end", WIDTH),
            at => ("middle", x(at)),
        };
        let _ = write!(
            out,
            "<line class=\"grid\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{1:.1}\" y2=\"{2:.1}\"/><text \
            x=\"{name_at:.1}\" y=\"{3}\" text-anchor=\"{name_anchor}\">{4}<title>{5}</title></text>",
            x(at),
            y(0.0),
            y(1.0),
            // Neighbouring names stand at two heights, so that long ones do not touch.
            if at.is_multiple_of(2) { 11 } else { 24 },
            escape(&cut(name, 22)),
            escape(name),
        );
        for (place, label) in labels.iter().take(MOST_LABELS) {
            let _ = write!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
                x(at) + side,
                y(*place) + if *place > 0.5 { 10.0 } else { 0.0 },
                escape(&cut(label, 12))
            );
        }
    };
    for (at, one) in shown.iter().enumerate() {
        axis(at, one.name, &labels(one.values));
    }
    axis(shown.len(), objective, &[(0.0, number(low)), (1.0, number(high))]);
    out.push_str("</svg>");
    if shown.len() < axes.len() {
        let _ = write!(
            out,
            "<p class=\"legend\">{} of {} settings.</p>",
            shown.len(),
            axes.len()
        );
    }
    out + "</figure>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_trial_is_a_line_with_gaps_where_it_has_no_setting() {
        let rate = Values::Float {
            low: 1.0,
            high: 3.0,
            log: false,
            step: None,
        };
        let kind = Values::Choice(vec![json!("<a>"), json!("b")]);
        let axes = [
            Axis {
                name: "rate",
                values: &rate,
            },
            Axis {
                name: "kind",
                values: &kind,
            },
        ];
        let (two, a) = (json!(2.0), json!("<a>"));
        let line = |values, objective| Line {
            values,
            objective,
            class: "c0",
            title: "trial <1>".to_owned(),
        };
        let lines = [
            line(vec![Some(&two), Some(&a)], 1.0),
            line(vec![Some(&two), None], 2.0),
            line(vec![Some(&two), Some(&a)], f64::NAN),
        ];
        let html = drawing("utility", &axes, &lines);
        assert_eq!(
            html.matches("<path").count(),
            2,
            "a trial without an objective is no line"
        );
        assert!(html.contains("d=\"M46.0 138.0L320.0 242.0L594.0 242.0\""), "{html}");
        assert!(html.contains("d=\"M46.0 138.0M594.0 34.0\""), "{html}");
        assert!(
            html.contains("trial &lt;1&gt;") && html.contains(">&lt;a&gt;<"),
            "{html}"
        );
        assert_eq!(drawing("utility", &axes, &[]), "");
    }
}
