//! Parts of charts: frames, ticks, legends of categories, bars and strips.

use crate::figures::Unit;
use crate::html::escape;
use std::fmt::Write as _;

pub(crate) const WIDTH: f64 = 640.0;
pub(super) const LEFT: f64 = 58.0;
pub(super) const RIGHT: f64 = 12.0;

/// Draws a line at each tick of the vertical axis, with its number, up to `right` of the right edge.
pub(crate) fn horizontal_grid(
    out: &mut String,
    ticks: &[f64],
    unit: Unit,
    right: f64,
    sy: impl Fn(f64) -> f64,
) {
    for (tick, label) in ticks.iter().zip(tick_labels(ticks, unit)) {
        let y = sy(*tick);
        let _ = write!(
            out,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
            <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            WIDTH - right,
            LEFT - 6.0,
            y + 4.0
        );
    }
}

/// The labels of ticks, with as many digits as tell them apart.
fn tick_labels(ticks: &[f64], unit: Unit) -> Vec<String> {
    let most = ticks.iter().fold(0.0, |most: f64, tick| most.max(tick.abs()));
    let (scale, suffix) = match unit {
        Unit::Percent => (100.0, " %"),
        _ if most >= 1e6 => (1e-6, "M"),
        _ if most >= 1e4 => (1e-3, "k"),
        _ => (1.0, ""),
    };
    let step = ticks
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) * scale)
        .next()
        .unwrap_or(1.0);
    if step.abs() < 1e-6 {
        return ticks.iter().map(|tick| number(*tick)).collect();
    }
    let is_whole = |digits: &i32| {
        let at = step * 10_f64.powi(*digits);
        (at - at.round()).abs() < 1e-6 * at.abs()
    };
    let digits = (0..8).find(is_whole).unwrap_or(8) as usize;
    let label = |tick: &f64| {
        let value = tick * scale;
        match value.abs() < step * 1e-6 {
            true if unit == Unit::Percent => "0 %".to_owned(),
            true => "0".to_owned(),
            false => format!("{value:.digits$}{suffix}").replace('-', "−"),
        }
    };
    ticks.iter().map(label).collect()
}

/// The beginning of a drawing.
pub(crate) fn figure(title: &str, height: f64, attributes: &str, label: &str) -> String {
    format!(
        "<figure><figcaption>{}</figcaption><svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\"{attributes} \
        aria-label=\"{}\">",
        escape(title),
        escape(label)
    )
}

/// The names of categories with their colours.
pub(crate) fn legend(names: impl Iterator<Item = String>) -> String {
    let name = |(i, name): (usize, String)| {
        format!(
            "<span><svg class=\"key\" width=\"10\" height=\"10\" aria-hidden=\"true\">\
            <rect class=\"f{}\" width=\"10\" height=\"10\" rx=\"2\"/></svg>{}</span> ",
            i % 6,
            escape(&name)
        )
    };
    format!(
        "<p class=\"legend\">{}</p>",
        names.enumerate().map(name).collect::<String>()
    )
}

/// A stacked bar with the share of each part.
pub(crate) fn split(title: &str, parts: &[(String, f64)]) -> String {
    let total: f64 = parts.iter().map(|part| part.1).sum();
    if total <= 0.0 {
        return String::new();
    }
    let mut out = figure(title, 26.0, "", title);
    let mut x = 0.0;
    for (i, (name, value)) in parts.iter().enumerate() {
        let width = value / total * WIDTH;
        let _ = write!(
            out,
            "<rect class=\"f{}\" x=\"{x:.1}\" y=\"2\" width=\"{width:.1}\" height=\"22\"><title>{} {:.1} \
            s</title></rect>",
            i % 6,
            escape(name),
            value
        );
        x += width;
    }
    let names = parts
        .iter()
        .map(|(name, value)| format!("{name} {value:.1} s ({:.0} %)", 100.0 * value / total));
    format!("{out}</svg>{}</figure>\n", legend(names))
}

/// The number of characters of a name for which a strip has room.
const STRIP_NAME: usize = 38;

/// A strip for each category with a mark at each step where it occurred.
pub(crate) fn strips(title: &str, names: &[String], at: &[(f64, usize)]) -> String {
    let Some(&(x0, _)) = at.first() else {
        return String::new();
    };
    let x1 = at.last().map_or(x0 + 1.0, |last| last.0.max(x0 + 1.0));
    let height = names.len() as f64 * 16.0 + 8.0;
    // The width of the longest name and its count, as wide as their characters are on a phone.
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let left = ((longest + 8) as f64 * 8.5).clamp(150.0, 400.0);
    let mut out = figure(title, height, "", title);
    for (row, name) in names.iter().enumerate() {
        let y = row as f64 * 16.0 + 4.0;
        let count = at.iter().filter(|(_, which)| *which == row).count();
        let mut path = String::new();
        for (x, which) in at {
            if *which == row {
                let _ = write!(
                    path,
                    "M{:.1} {:.1}v11",
                    left + (x - x0) / (x1 - x0) * (WIDTH - left - RIGHT),
                    y + 1.0
                );
            }
        }
        let _ = write!(
            out,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{} ({count})</text><path class=\"c{}\" \
            d=\"{path}\"><title>{}: {count}</title></path>",
            left - 8.0,
            y + 11.0,
            escape(&cut(name, STRIP_NAME)),
            row % 6,
            escape(name)
        );
    }
    out.push_str("</svg></figure>\n");
    out
}

/// The first characters of a text that is longer.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

/// About `wanted` round values that span the range.
pub(crate) fn ticks(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    let span = match (high - low, low.abs()) {
        (span, _) if span > 0.0 => span,
        (_, size) if size > 0.0 => size,
        _ => 1.0,
    };
    let raw = span / wanted as f64;
    let magnitude = 10_f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * magnitude)
        .find(|step| *step >= raw * 0.999)
        .unwrap_or(raw);
    let first = (low / step).floor() as i64;
    let last = ((low + span) / step).ceil() as i64;
    (first..=last).map(|i| i as f64 * step).collect()
}

/// Formats a number briefly: 12k, 1.5M, 0.034.
pub fn number(value: f64) -> String {
    let size = value.abs();
    let trim = |text: String| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text
        }
    };
    if size >= 1e6 {
        format!("{}M", trim(format!("{:.2}", value / 1e6)))
    } else if size >= 1e4 {
        format!("{}k", trim(format!("{:.1}", value / 1e3)))
    } else if size >= 100.0 || size == 0.0 {
        trim(format!("{value:.0}"))
    } else if size >= 1.0 {
        trim(format!("{value:.2}"))
    } else if size >= 1e-3 {
        trim(format!("{value:.4}"))
    } else {
        format!("{value:.1e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_span_the_range() {
        assert_eq!(ticks(0.0, 1.0, 5), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        let flat = ticks(3.0, 3.0, 5);
        assert!(flat[0] <= 3.0 && *flat.last().unwrap() >= 3.0 && flat.len() > 1);
        let negative = ticks(-0.37, -0.01, 5);
        assert!(negative[0] <= -0.37 && *negative.last().unwrap() >= -0.01);
    }

    #[test]
    fn ticks_are_told_apart_and_have_their_unit() {
        assert_eq!(
            tick_labels(&[-0.1, -0.05, 0.0], Unit::Percent),
            ["−10 %", "−5 %", "0 %"]
        );
        assert_eq!(
            tick_labels(&[1.0, 1.0025, 1.005], Unit::Plain),
            ["1.0000", "1.0025", "1.0050"]
        );
        assert_eq!(
            tick_labels(&[1_000_000.0, 1_002_500.0], Unit::Money),
            ["1.0000M", "1.0025M"]
        );
        assert_eq!(tick_labels(&[0.0, 5e3, 1e4], Unit::Plain), ["0", "5k", "10k"]);
    }

    #[test]
    fn numbers_are_short() {
        let shown: Vec<_> = [0.0, 1234.0, 300_000.0, 2_800_000.0, 0.0312, -1.5, 4e-5]
            .map(number)
            .into();
        assert_eq!(shown, ["0", "1234", "300k", "2.8M", "0.0312", "-1.5", "4.0e-5"]);
    }

    #[test]
    fn long_names_of_actions_are_not_cut_by_the_edge() {
        let names = ["hold".to_owned(), "x".repeat(60)];
        let chart = strips("t", &names, &[(0.0, 0), (1.0, 1)]);
        assert!(chart.contains(&format!(">{}… (1)<", "x".repeat(37))), "{chart}");
        assert!(chart.contains(&format!("<title>{}: 1</title>", "x".repeat(60))));
        assert!(chart.contains("<text x=\"392\""), "{chart}");
    }
}
