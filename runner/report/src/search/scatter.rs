//! Trials as dots: the objective over the order of jobs, and over each setting.

use crate::chart::{Unit, WIDTH, cut, figure, horizontal_grid, number, ticks};
use crate::html::escape;
use std::fmt::Write as _;

const LEFT: f64 = 58.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 24.0;

/// The share of the worst trials that do not widen the vertical axis: a training that diverged would squash
/// all others.
const WORST: f64 = 0.1;

/// A result of a trial.
pub(super) struct Dot {
    /// The place on the horizontal axis, from 0 to 1.
    pub x: f64,
    /// The objective.
    pub y: f64,
    /// The colour's number.
    pub colour: usize,
    /// The words that are shown when the dot is pointed at.
    pub title: String,
}

/// A chart of dots.
pub(super) struct Scatter<'a> {
    /// The title.
    pub title: &'a str,
    /// The height.
    pub height: f64,
    /// True if more is better, false if less is; `None` where neither is known, and the axis shows all.
    pub maximize: Option<bool>,
    /// The results.
    pub dots: Vec<Dot>,
    /// The labels of the horizontal axis with their places.
    pub labels: Vec<(f64, String)>,
    /// The corners of the line of the best so far, in order.
    pub best: Vec<(f64, f64)>,
    /// The names of the colours.
    pub legend: &'a [String],
}

impl Scatter<'_> {
    /// The range of the vertical axis, and the number of dots beyond it.
    fn range(&self) -> Option<(f64, f64, usize)> {
        let mut values: Vec<f64> = self.dots.iter().map(|dot| dot.y).filter(|y| y.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        let few = (values.len() as f64 * WORST) as usize;
        let (low, high) = match self.maximize {
            None => (low, high),
            Some(true) => (low.max(values[few] - (high - values[few]) * WORST), high),
            Some(false) => {
                let worst = values[values.len() - 1 - few];
                (low, high.min(worst + (worst - low) * WORST))
            }
        };
        let beyond = values.iter().filter(|y| **y < low || **y > high).count();
        Some((low, high, beyond))
    }

    /// The chart as HTML; empty if there is nothing to draw.
    pub(super) fn html(&self) -> String {
        let Some((low, high, beyond)) = self.range() else {
            return String::new();
        };
        let ticks = ticks(low, high, 5);
        let (y0, y1) = (low.min(ticks[0]), high.max(*ticks.last().unwrap_or(&high)));
        let sx = |x: f64| LEFT + x * (WIDTH - LEFT - RIGHT);
        let sy = |y: f64| TOP + (y1 - y.clamp(y0, y1)) / (y1 - y0) * (self.height - TOP - BOTTOM);
        let label = format!(
            "{}: {} results, from {} to {}",
            self.title,
            self.dots.len(),
            number(low),
            number(high)
        );
        let mut out = figure(self.title, self.height, " tabindex=\"0\"", &label);
        horizontal_grid(&mut out, &ticks, Unit::Plain, RIGHT, sy);
        for (place, label) in &self.labels {
            let anchor = match place {
                0.0 => "start",
                1.0 => "end",
                _ => "middle",
            };
            let _ = write!(
                out,
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
                sx(*place),
                self.height - 6.0,
                escape(&cut(label, 24))
            );
        }
        for dot in self.dots.iter().filter(|dot| dot.y.is_finite()) {
            let _ = write!(
                out,
                "<circle class=\"f{}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\"><title>{}</title></circle>",
                dot.colour % 6,
                sx(dot.x),
                sy(dot.y),
                escape(&dot.title)
            );
        }
        if let [(x, y), rest @ ..] = self.best.as_slice() {
            let mut path = format!("M{:.1} {:.1}", sx(*x), sy(*y));
            for (x, y) in rest {
                let _ = write!(path, "H{:.1}V{:.1}", sx(*x), sy(*y));
            }
            let _ = write!(out, "<path class=\"c1\" d=\"{path}H{:.1}\"/>", sx(1.0));
        }
        out.push_str("</svg>");
        if self.legend.len() > 1 {
            out.push_str(&crate::chart::legend(self.legend.iter().cloned()));
        }
        if beyond > 0 {
            let _ = write!(
                out,
                "<p class=\"legend\">{beyond} worse than the axis shows, at its edge.</p>"
            );
        }
        out + "</figure>\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scatter(maximize: bool, values: &[f64]) -> Scatter<'static> {
        let n = values.len() as f64;
        let dot = |(i, y): (usize, &f64)| Dot {
            x: i as f64 / n,
            y: *y,
            colour: 0,
            title: format!("trial {i} <b>"),
        };
        Scatter {
            title: "t",
            height: 200.0,
            maximize: Some(maximize),
            dots: values.iter().enumerate().map(dot).collect(),
            labels: vec![(0.0, "0".to_owned())],
            best: vec![(0.0, 1.0), (0.5, 2.0)],
            legend: &[],
        }
    }

    #[test]
    fn a_trial_that_diverged_does_not_squash_the_others() {
        let mut values: Vec<f64> = (0..20).map(f64::from).collect();
        values.push(-1e9);
        let chart = scatter(true, &values);
        let (low, high, beyond) = chart.range().unwrap();
        assert!(
            (-2.0..2.0).contains(&low) && high == 19.0 && beyond >= 1,
            "{low} {high} {beyond}"
        );
        let html = chart.html();
        assert_eq!(html.matches("<circle").count(), 21, "it is drawn at the edge");
        assert!(html.contains("worse than the axis shows"), "{html}");
        let less: Vec<f64> = values.iter().map(|value| -value).collect();
        let (best, worst, _) = scatter(false, &less).range().unwrap();
        assert!(best == -19.0 && worst < 2.0, "{best} {worst}");
    }

    #[test]
    fn the_best_so_far_is_a_staircase() {
        let html = scatter(true, &[1.0, 2.0, f64::NAN]).html();
        assert_eq!(html.matches("<circle").count(), 2, "what failed is no dot");
        assert!(html.contains("d=\"M58.0 176.0H342.0V10.0H626.0\""), "{html}");
        assert!(html.contains("trial 0 &lt;b&gt;"));
        assert_eq!(scatter(true, &[]).html(), "");
    }
}
