//! The drawing of a line chart as SVG, which stands where no script runs.

use super::data;
use super::model::{Chart, Look, Role, Series, is_shown, looks};
use super::parts::{LEFT, RIGHT, WIDTH, cut, figure, horizontal_grid, ticks};
use crate::figures;
use crate::html::{escape, table};
use std::fmt::Write as _;

const TOP: f64 = 10.0;
const BOTTOM: f64 = 24.0;
/// The number of points of a line in the table of values.
const MOST_MARKS: usize = 12;
/// The maximum number of points of a drawn line: two for each three of the width.
const MOST_POINTS: usize = 400;
/// The number of lines up to which each has its name at its right end.
const LABELLED: usize = 4;
/// The distance of names, and their maximum number of characters.
const LABEL: f64 = 13.0;
const LABEL_CHARS: usize = 18;

/// The ranges of a chart: of x, and of y with its ticks.
struct Ranges {
    x: (f64, f64),
    y: (f64, f64),
    ticks: Vec<f64>,
}

impl Ranges {
    fn new(series: &[Series]) -> Option<Self> {
        let edges = |one: &Series| -> Vec<(f64, f64)> {
            let band = one.band.iter();
            band.flat_map(|&(x, low, high)| [(x, low), (x, high)]).collect()
        };
        let all = series
            .iter()
            .flat_map(|one| one.points.iter().copied().chain(edges(one)));
        let finite = all.filter(|(x, y)| x.is_finite() && y.is_finite());
        let [mut x, mut y] = [(f64::INFINITY, f64::NEG_INFINITY); 2];
        for (at, value) in finite {
            x = (x.0.min(at), x.1.max(at));
            y = (y.0.min(value), y.1.max(value));
        }
        if x.0 > x.1 {
            return None;
        }
        // A single position stands in the middle.
        if x.0 == x.1 {
            x = (x.0 - 1.0, x.1 + 1.0);
        }
        let ticks = ticks(y.0, y.1, 5);
        let y = (y.0.min(ticks[0]), y.1.max(*ticks.last().unwrap_or(&y.1)));
        Some(Self { x, y, ticks })
    }

    fn has_hours(&self) -> bool {
        self.x.0.fract() != 0.0 || self.x.1.fract() != 0.0
    }
}

impl Chart {
    /// The chart as HTML: the drawing, a table of values, a legend, and the data for the script of the page.
    /// Empty if there is nothing to draw.
    pub fn html(&self) -> String {
        let (looks, shown) = (looks(&self.series), is_shown(&self.series));
        let Some(ranges) = Ranges::new(&self.series) else {
            return String::new();
        };
        let label = format!("{}. {}", self.title, self.summary());
        let mut out = figure(&self.title, self.height, " tabindex=\"0\"", &label);
        out = out.replacen(
            "<figure>",
            &format!("<figure data-chart=\"{}\">", escape(&self.id())),
            1,
        );
        self.draw(&mut out, &ranges, &looks, &shown);
        out.push_str("</svg>");
        if self.series.len() > 1 {
            out.push_str(&self.legend(&looks, &shown));
        }
        out.push_str(&self.values(&ranges));
        let data = data::json(self, &looks, &shown);
        let _ = write!(out, "<script type=\"application/json\">{data}</script>");
        out + "</figure>\n"
    }

    /// The chart as a file of its own, in light and dark; empty if there is nothing to draw.
    pub fn svg(&self) -> String {
        const ROW: f64 = 18.0;
        const HEAD: f64 = 26.0;
        let (looks, shown) = (looks(&self.series), is_shown(&self.series));
        let Some(ranges) = Ranges::new(&self.series) else {
            return String::new();
        };
        let rows = if self.series.len() > 1 {
            self.series.len().div_ceil(3)
        } else {
            0
        };
        let height = HEAD + self.height + rows as f64 * ROW + 6.0;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" width=\"{WIDTH}\" height=\"{height}\" \
            viewBox=\"0 0 {WIDTH} {height}\" role=\"img\"><title>{}</title><style>{}</style>\
            <rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\" rx=\"8\"/>\
            <text class=\"title\" x=\"12\" y=\"18\">{0}</text><g transform=\"translate(0 {HEAD})\">",
            escape(&self.title),
            super::STYLE,
        );
        self.draw(&mut out, &ranges, &looks, &shown);
        for (i, (one, look)) in self.series.iter().zip(&looks).enumerate().filter(|_| rows > 0) {
            let x = 12.0 + (i % 3) as f64 * (WIDTH - 24.0) / 3.0;
            let y = self.height + (i / 3) as f64 * ROW + 10.0;
            let _ = write!(
                out,
                "<path {} d=\"M{x:.1} {y}h24\"/><text x=\"{:.1}\" y=\"{}\">{}</text>",
                stroke(look),
                x + 30.0,
                y + 4.0,
                escape(&cut(&one.name, 26))
            );
        }
        out + "</g></svg>\n"
    }

    /// The name of the chart among those of a page, by which a reader's choices are kept.
    fn id(&self) -> String {
        format!("{} {}", self.group, self.title).trim().to_owned()
    }

    fn draw(&self, out: &mut String, ranges: &Ranges, looks: &[Look], shown: &[bool]) {
        let named = self.named(shown);
        let right = named.iter().map(|(_, name)| name.chars().count()).max();
        let right = right.map_or(RIGHT, |longest| longest as f64 * 6.2 + 12.0);
        let ((x0, x1), (y0, y1)) = (ranges.x, ranges.y);
        let sx = |x: f64| LEFT + (x - x0) / (x1 - x0) * (WIDTH - LEFT - right);
        let sy = |y: f64| TOP + (y1 - y) / (y1 - y0) * (self.height - TOP - BOTTOM);
        horizontal_grid(out, &ranges.ticks, self.unit, right, sy);
        let is_single = self.series.iter().all(|one| one.points.len() + one.band.len() <= 1);
        for i in if is_single { 2..=2 } else { 0..=4 } {
            let x = x0 + (x1 - x0) * f64::from(i) / 4.0;
            let label = self.axis.label(x, ranges.has_hours());
            let anchor = ["start", "middle", "middle", "middle", "end"][i as usize];
            let _ = write!(
                out,
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{label}</text>",
                sx(x),
                self.height - 6.0
            );
        }
        for (one, look) in self.series.iter().zip(looks).filter(|(one, _)| !one.band.is_empty()) {
            let band = data::thin_band(&one.band, MOST_POINTS);
            let upper = band.iter().map(|&(x, _, high)| (x, high));
            let lower = band.iter().rev().map(|&(x, low, _)| (x, low));
            let corners: Vec<String> = upper
                .chain(lower)
                .map(|(x, y)| format!("{:.1} {:.1}", sx(x), sy(y)))
                .collect();
            let _ = write!(
                out,
                "<path class=\"band l-{}\" d=\"M{}Z\"/>",
                look.colour,
                corners.join("L")
            );
        }
        // The policy is drawn last, over the others; what is not shown at first is drawn faintly.
        let mut order: Vec<usize> = (0..self.series.len()).collect();
        order.sort_by_key(|i| (shown[*i], self.series[*i].role == Role::Policy));
        for i in order {
            let (one, look) = (&self.series[i], &looks[i]);
            let mut path = String::new();
            let mut pen_down = false;
            for (x, y) in data::thin(&one.points, MOST_POINTS) {
                if x.is_finite() && y.is_finite() {
                    let _ = write!(path, "{}{:.1} {:.1}", if pen_down { 'L' } else { 'M' }, sx(x), sy(y));
                    pen_down = true;
                } else {
                    pen_down = false;
                }
            }
            // A point alone is no line.
            if let [(x, y)] = one.points[..]
                && y.is_finite()
            {
                let _ = write!(
                    out,
                    "<circle class=\"l-{}\" fill=\"currentColor\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"/>",
                    look.colour,
                    sx(x),
                    sy(y)
                );
            }
            if path.is_empty() {
                continue;
            }
            let faint = if shown[i] { "" } else { " stroke-opacity=\".35\"" };
            let name = escape(&one.name);
            let _ = write!(
                out,
                "<path {}{faint} d=\"{path}\"><title>{name}</title></path>",
                stroke(look)
            );
        }
        // Names at the ends of lines, moved apart.
        let mut free = TOP;
        let overflow = named.len() as f64 * LABEL;
        for (i, (y, name)) in named.iter().enumerate() {
            let most = self.height - BOTTOM - overflow + (i as f64 + 1.0) * LABEL;
            let at = (sy(*y) + 4.0).max(free).min(most.max(free));
            free = at + LABEL;
            let _ = write!(
                out,
                "<text class=\"end\" x=\"{:.1}\" y=\"{at:.1}\">{}</text>",
                WIDTH - right + 6.0,
                escape(name)
            );
        }
    }

    /// The names at the right ends of lines with the value at which each ends, from above; none of one line
    /// or of many.
    fn named(&self, shown: &[bool]) -> Vec<(f64, String)> {
        let lines = self
            .series
            .iter()
            .zip(shown)
            .filter(|(one, shown)| **shown && one.last().is_some());
        let mut named: Vec<(f64, String)> = lines
            .filter_map(|(one, _)| Some((one.last()?, cut(&one.name, LABEL_CHARS))))
            .collect();
        if !(2..=LABELLED).contains(&named.len()) {
            return Vec::new();
        }
        named.sort_by(|a, b| b.0.total_cmp(&a.0));
        named
    }

    fn legend(&self, looks: &[Look], shown: &[bool]) -> String {
        let mut out = String::from("<p class=\"legend\">");
        for ((one, look), shown) in self.series.iter().zip(looks).zip(shown) {
            let sample = match one.points.is_empty() {
                true => format!("<path class=\"band l-{}\" d=\"M1 1h22v8h-22z\"/>", look.colour),
                false => format!("<path {} d=\"M1 5h22\"/>", stroke(look)),
            };
            let class = if *shown { "" } else { " class=\"off\"" };
            let _ = write!(
                out,
                "<span{class}><svg class=\"key\" width=\"24\" height=\"10\" \
                aria-hidden=\"true\">{sample}</svg>{}</span> ",
                escape(&one.name)
            );
        }
        out + "</p>"
    }

    /// The first and the last value of each line, for screen readers.
    fn summary(&self) -> String {
        let of = |one: &Series| {
            let marks = marks(&one.points);
            let ends = marks.first().zip(marks.last());
            let text = |y: f64| figures::shown(y, self.unit);
            ends.map(|(first, last)| format!("{}: from {} to {}", one.name, text(first.1), text(last.1)))
        };
        self.series.iter().filter_map(of).collect::<Vec<_>>().join("; ")
    }

    /// The values of the lines as a table that can be opened with the keyboard.
    fn values(&self, ranges: &Ranges) -> String {
        let rows: Vec<_> = self
            .series
            .iter()
            .flat_map(|one| marks(&one.points).into_iter().map(move |point| (one, point)))
            .map(|(one, (x, y))| {
                let at = self.axis.label(x, ranges.has_hours());
                vec![escape(&one.name), at, figures::shown(y, self.unit)]
            })
            .collect();
        format!(
            "<details class=\"values\"><summary>values</summary>{}</details>",
            table(&["line", "at", "value"], &rows)
        )
    }
}

/// The attributes of a line.
fn stroke(look: &Look) -> String {
    format!(
        "class=\"l-{}\" stroke-width=\"{}\"{}",
        look.colour,
        look.width,
        look.dashes()
    )
}

/// The points of a line that the table lists: evenly spaced, including the last point.
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

#[cfg(test)]
mod tests {
    use super::super::{Axis, lines};
    use super::*;

    #[test]
    fn values_are_read_by_keyboard() {
        let points: Vec<_> = (0..100).map(|i| (f64::from(i), f64::from(2 * i))).collect();
        let chart = lines("t", &[Series::line("a", points)], Axis::Steps, 200.0);
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
        let (band, line) = (
            svg.find("class=\"band l-c0\"").unwrap(),
            svg.find("class=\"l-c0\"").unwrap(),
        );
        assert!(band < line, "{svg}");
        assert!(svg.contains(">−10<") && svg.contains(">15<"), "{svg}");
        assert!(svg.contains("&lt;a&gt;") && !svg.contains("<a>"));
    }

    #[test]
    fn a_single_point_is_a_dot_over_one_label() {
        let chart = lines("t", &[Series::line("a", vec![(8192.0, 3.0)])], Axis::Steps, 200.0);
        assert_eq!(chart.matches("<circle").count(), 1, "{chart}");
        assert_eq!(chart.matches("text-anchor=\"middle\">8192<").count(), 1, "{chart}");
        assert_eq!(chart.matches("text-anchor=\"start\"").count(), 0, "{chart}");
    }

    #[test]
    fn few_lines_have_their_names_at_their_ends() {
        let line =
            |name: &str, last: f64| Series::line(name, vec![(0.0, 1.0), (1.0, last)]).role(Role::of(name));
        let chart = |names: &[&str]| {
            let series = names.iter().enumerate().map(|(i, name)| line(name, 2.0 + i as f64));
            Chart::new("t", series.collect(), Axis::Days)
        };
        let four = chart(&["policy", "cash", "underlying", "random"]);
        assert_eq!(four.html().matches("class=\"end\"").count(), 4);
        let svg = four.svg();
        assert!(svg.starts_with("<svg xmlns=") && svg.contains("--policy:") && !svg.contains("<script"));
        assert_eq!(
            chart(&["a", "b", "c", "d", "e"])
                .html()
                .matches("class=\"end\"")
                .count(),
            0
        );
        // The policy is drawn over what stands after it in the legend.
        let html = four.html();
        let at = |class: &str| html.find(&format!("<path class=\"l-{class}\"")).unwrap();
        assert!(at("policy") > at("baseline-1"));
    }
}
