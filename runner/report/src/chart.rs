//! Charts as inline SVG: they scale with the page, follow its colours, and need no script.

use super::html::{escape, table};
use std::fmt::Write as _;

/// One line of a chart.
pub struct Series {
    /// The series' name in the legend.
    pub name: String,
    /// The points (x, y), in order of rising x; points that are not finite interrupt the line.
    pub points: Vec<(f64, f64)>,
    /// The band around the line as (x, low, high), in order of rising x, all finite; empty for none.
    pub band: Vec<(f64, f64, f64)>,
}

impl Series {
    /// Creates a line without a band.
    pub fn line(name: &str, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.to_owned(),
            points,
            band: Vec::new(),
        }
    }
}

/// The unit of the horizontal axis.
#[derive(Clone, Copy)]
pub enum Axis {
    /// Steps: 12k, 1.5M.
    Steps,
    /// Days since 1970-01-01.
    Days,
}

impl Axis {
    /// The label of a position on the axis: for instants, the day on which they are; for days, the nearest
    /// day.
    fn label(self, x: f64, has_hours: bool) -> String {
        match self {
            Self::Steps => number(x),
            Self::Days if has_hours => datasets::Date(x.floor() as i32).to_string(),
            Self::Days => datasets::Date(x.round() as i32).to_string(),
        }
    }
}

pub(crate) const WIDTH: f64 = 640.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 24.0;
/// Draws a line at each tick of the vertical axis, with its number.
pub(crate) fn horizontal_grid(out: &mut String, ticks: &[f64], sy: impl Fn(f64) -> f64) {
    for &tick in ticks {
        let y = sy(tick);
        let _ = write!(
            out,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><text x=\"{}\" \
            y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            y + 4.0,
            number(tick)
        );
    }
}

/// The maximum number of points of a line that show their value.
const MOST_MARKS: usize = 12;
/// The maximum number of points of a line. Longer lines are thinned to the minimum and maximum of each
/// bucket.
const MOST_POINTS: usize = 800;

/// A line chart with a legend; empty if there is nothing to draw.
pub fn lines(title: &str, series: &[Series], axis: Axis, height: f64) -> String {
    let finite = || {
        let edges = |s: &Series| {
            s.band
                .iter()
                .flat_map(|&(x, low, high)| [(x, low), (x, high)])
                .collect::<Vec<_>>()
        };
        series
            .iter()
            .flat_map(move |s| s.points.iter().copied().chain(edges(s)))
            .filter(|(x, y)| x.is_finite() && y.is_finite())
    };
    let bounds = |pick: fn((f64, f64)) -> f64| {
        finite().map(pick).fold(None, |range: Option<(f64, f64)>, value| {
            Some(range.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
        })
    };
    let (Some((x0, x1)), Some((y0, y1))) = (bounds(|p| p.0), bounds(|p| p.1)) else {
        return String::new();
    };
    let x1 = if x1 > x0 { x1 } else { x0 + 1.0 };
    let ticks = ticks(y0, y1, 5);
    let (y0, y1) = (y0.min(ticks[0]), y1.max(*ticks.last().unwrap_or(&y1)));
    let sx = |x: f64| LEFT + (x - x0) / (x1 - x0) * (WIDTH - LEFT - RIGHT);
    let sy = |y: f64| TOP + (y1 - y) / (y1 - y0) * (height - TOP - BOTTOM);

    let label = format!("{title}. {}", summary(series));
    let mut out = figure(title, height, " tabindex=\"0\"", &label);
    horizontal_grid(&mut out, &ticks, sy);
    for i in 0..=4 {
        let x = x0 + (x1 - x0) * f64::from(i) / 4.0;
        let label = axis.label(x, x0.fract() != 0.0 || x1.fract() != 0.0);
        let anchor = ["start", "middle", "middle", "middle", "end"][i as usize];
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{label}</text>",
            sx(x),
            height - 6.0
        );
    }
    for (i, one) in series.iter().enumerate().filter(|(_, one)| !one.band.is_empty()) {
        let band = thin_band(&one.band);
        let upper = band.iter().map(|&(x, _, high)| (x, high));
        let lower = band.iter().rev().map(|&(x, low, _)| (x, low));
        let corners: Vec<String> = upper
            .chain(lower)
            .map(|(x, y)| format!("{:.1} {:.1}", sx(x), sy(y)))
            .collect();
        let _ = write!(out, "<path class=\"b{}\" d=\"M{}Z\"/>", i % 6, corners.join("L"));
    }
    for (i, one) in series.iter().enumerate() {
        let mut path = String::new();
        let mut pen_down = false;
        for (x, y) in thin(&one.points) {
            if x.is_finite() && y.is_finite() {
                let _ = write!(path, "{}{:.1} {:.1}", if pen_down { 'L' } else { 'M' }, sx(x), sy(y));
                pen_down = true;
            } else {
                pen_down = false;
            }
        }
        let _ = write!(
            out,
            "<path class=\"c{}{}\" d=\"{path}\"><title>{}</title></path>",
            i % 6,
            // The style sheet has six colours.
            if i < 6 { "" } else { " dashed" },
            escape(&one.name)
        );
    }
    let has_hours = x0.fract() != 0.0 || x1.fract() != 0.0;
    for one in series {
        for (x, y) in marks(&one.points) {
            let _ = write!(
                out,
                "<circle class=\"mark\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"7\"><title>{}, {}: {}</title></circle>",
                sx(x),
                sy(y),
                escape(&one.name),
                axis.label(x, has_hours),
                number(y)
            );
        }
    }
    out.push_str("</svg>");
    out.push_str(&values(series, |x| axis.label(x, has_hours)));
    if series.len() > 1 {
        out.push_str(&legend(series.iter().map(|one| one.name.clone())));
    }
    out + "</figure>\n"
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

pub(crate) fn legend(names: impl Iterator<Item = String>) -> String {
    let name = |(i, name): (usize, String)| format!("<span class=\"k{}\">{}</span> ", i % 6, escape(&name));
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
            escape(&shorten(name)),
            row % 6,
            escape(name)
        );
    }
    out.push_str("</svg></figure>\n");
    out
}

/// The points of a line that show their value when pointed at, and that the table lists: evenly spaced,
/// including the last point.
fn marks(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let finite: Vec<_> = points
        .iter()
        .copied()
        .filter(|(x, y)| x.is_finite() && y.is_finite())
        .collect();
    let Some(last) = finite.len().checked_sub(1) else {
        return finite;
    };
    let n = last.min(MOST_MARKS - 1);
    (0..=n)
        .map(|i| finite[(i * last).checked_div(n).unwrap_or(0)])
        .collect()
}

/// The first and the last value of each line, for screen readers.
fn summary(series: &[Series]) -> String {
    let of = |one: &Series| {
        let marks = marks(&one.points);
        let ends = marks.first().zip(marks.last());
        ends.map(|(first, last)| format!("{}: from {} to {}", one.name, number(first.1), number(last.1)))
    };
    series.iter().filter_map(of).collect::<Vec<_>>().join("; ")
}

/// The values of the lines as a table that can be opened with the keyboard.
fn values(series: &[Series], label: impl Fn(f64) -> String) -> String {
    let rows: Vec<_> = series
        .iter()
        .flat_map(|one| marks(&one.points).into_iter().map(move |point| (one, point)))
        .map(|(one, (x, y))| vec![escape(&one.name), label(x), number(y)])
        .collect();
    format!(
        "<details class=\"values\"><summary>values</summary>{}</details>",
        table(&["", "at", "value"], &rows)
    )
}

fn thin(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if points.len() <= MOST_POINTS {
        return points.to_vec();
    }
    let bucket = points.len().div_ceil(MOST_POINTS / 2);
    points
        .chunks(bucket)
        .flat_map(|chunk| {
            let low = chunk.iter().enumerate().min_by(|a, b| a.1.1.total_cmp(&b.1.1));
            let high = chunk.iter().enumerate().max_by(|a, b| a.1.1.total_cmp(&b.1.1));
            let mut ends: Vec<_> = low.into_iter().chain(high).collect();
            ends.sort_by_key(|(at, _)| *at);
            ends.into_iter().map(|(_, point)| *point).collect::<Vec<_>>()
        })
        .collect()
}

/// Shortens a name to at most 38 characters, for which a strip has room.
fn shorten(name: &str) -> String {
    if name.chars().count() <= 38 {
        return name.to_owned();
    }
    name.chars().take(37).chain(['…']).collect()
}

fn thin_band(band: &[(f64, f64, f64)]) -> Vec<(f64, f64, f64)> {
    let bucket = band.len().div_ceil(MOST_POINTS / 2).max(1);
    band.chunks(bucket)
        .map(|chunk| {
            let low = chunk.iter().map(|at| at.1).fold(f64::INFINITY, f64::min);
            let high = chunk.iter().map(|at| at.2).fold(f64::NEG_INFINITY, f64::max);
            (chunk[chunk.len() / 2].0, low, high)
        })
        .collect()
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
    fn numbers_are_short() {
        let shown: Vec<_> = [0.0, 1234.0, 300_000.0, 2_800_000.0, 0.0312, -1.5, 4e-5]
            .map(number)
            .into();
        assert_eq!(shown, ["0", "1234", "300k", "2.8M", "0.0312", "-1.5", "4.0e-5"]);
    }

    #[test]
    fn values_are_read_by_pointing_and_by_keyboard() {
        let points: Vec<_> = (0..100).map(|i| (f64::from(i), f64::from(2 * i))).collect();
        let chart = lines("t", &[Series::line("a", points)], Axis::Steps, 200.0);
        assert_eq!(chart.matches("<circle").count(), MOST_MARKS);
        assert!(chart.contains("<title>a, 99: 198</title>"), "{chart}");
        assert!(
            chart.contains("tabindex=\"0\" aria-label=\"t. a: from 0 to 198\""),
            "{chart}"
        );
        assert!(
            chart.contains("<summary>values</summary>") && chart.contains(">198</td>"),
            "{chart}"
        );
        assert_eq!(marks(&[(1.0, f64::NAN)]), []);
        assert_eq!(marks(&[(1.0, 2.0)]), [(1.0, 2.0)]);
    }

    #[test]
    fn long_names_of_actions_are_not_cut_by_the_edge() {
        let names = ["hold".to_owned(), "x".repeat(60)];
        let chart = strips("t", &names, &[(0.0, 0), (1.0, 1)]);
        assert!(chart.contains(&format!(">{}… (1)<", "x".repeat(37))), "{chart}");
        assert!(chart.contains(&format!("<title>{}: 1</title>", "x".repeat(60))));
        assert!(chart.contains("<text x=\"392\""), "{chart}");
    }

    #[test]
    fn nothing_to_draw_is_no_chart() {
        let none = Series::line("x", vec![(0.0, f64::NAN)]);
        assert_eq!(lines("t", &[none], Axis::Steps, 200.0), "");
    }

    #[test]
    fn a_band_is_drawn_under_its_line_and_fits() {
        let series = Series {
            band: vec![(0.0, -10.0, 12.0), (1.0, 0.0, 3.0)],
            ..Series::line("<a>", vec![(0.0, 1.0), (1.0, 2.0)])
        };
        let svg = lines("t", &[series], Axis::Steps, 200.0);
        let (band, line) = (svg.find("class=\"b0\"").unwrap(), svg.find("class=\"c0\"").unwrap());
        assert!(band < line, "{svg}");
        assert!(svg.contains(">-10<") && svg.contains(">15<"), "{svg}");
        assert!(svg.contains("&lt;a&gt;"));
    }

    #[test]
    fn thinning_keeps_the_extremes() {
        let mut points: Vec<_> = (0..10_000).map(|i| (f64::from(i), 0.0)).collect();
        points[5_003].1 = 9.0;
        points[7_777].1 = -9.0;
        let thinned = thin(&points);
        assert!(thinned.len() <= MOST_POINTS + 2);
        assert!(thinned.contains(&points[5_003]) && thinned.contains(&points[7_777]));
    }
}
