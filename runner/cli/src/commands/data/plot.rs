//! Plots of points as text.

use std::fmt::Write as _;

/// The width of a plot, in characters.
const WIDTH: usize = 64;
/// The height of a plot, in lines.
const HEIGHT: usize = 12;

/// Points with a sign for each series, on axes with their least and greatest values.
pub(super) fn plot(title: &str, series: &[(char, Vec<(f64, f64)>)], x: &str, y: &str) -> String {
    let points: Vec<(f64, f64)> = series.iter().flat_map(|(_, points)| points.iter().copied()).collect();
    let range = |value: fn(&(f64, f64)) -> f64| {
        let values = points.iter().map(value);
        let (least, most) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        // One value alone stands in the middle.
        if most > least {
            (least, most)
        } else {
            (least - 0.5, most + 0.5)
        }
    };
    if points.is_empty() {
        return format!("{title}: nothing to plot\n");
    }
    let ((x0, x1), (y0, y1)) = (range(|p| p.0), range(|p| p.1));
    let mut grid = vec![vec![' '; WIDTH]; HEIGHT];
    for (sign, points) in series {
        for (px, py) in points {
            let column = ((px - x0) / (x1 - x0) * (WIDTH - 1) as f64).round() as usize;
            let line = HEIGHT - 1 - ((py - y0) / (y1 - y0) * (HEIGHT - 1) as f64).round() as usize;
            let cell = &mut grid[line][column];
            *cell = if *cell == ' ' || *cell == *sign { *sign } else { '*' };
        }
    }
    let mut out = format!("{title}\n");
    for (i, line) in grid.into_iter().enumerate() {
        let label = match i {
            0 => format!("{y1:>9.4}"),
            i if i == HEIGHT - 1 => format!("{y0:>9.4}"),
            _ => " ".repeat(9),
        };
        let line: String = line.into_iter().collect();
        let _ = writeln!(out, "  {label} |{}", line.trim_end());
    }
    let _ = writeln!(out, "  {:9} +{}", "", "-".repeat(WIDTH));
    let (left, right) = (format!("{x0:.4}"), format!("{x1:.4}"));
    let gap = WIDTH.saturating_sub(left.len() + right.len());
    let _ = writeln!(out, "  {:9}  {left}{}{right}", "", " ".repeat(gap));
    let _ = writeln!(out, "  {:9}  {x} across, {y} up", "");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_stand_at_their_places() {
        let text = plot(
            "t",
            &[('c', vec![(0.0, 1.0), (10.0, 2.0)]), ('p', vec![(0.0, 1.0)])],
            "x",
            "y",
        );
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1].find('c'), Some(13 + WIDTH - 1));
        assert_eq!(lines[HEIGHT].find('*'), Some(13), "two series at one place");
        assert!(lines[HEIGHT + 2].contains("0.0000") && lines[HEIGHT + 2].contains("10.0000"));
        assert_eq!(plot("t", &[], "x", "y"), "t: nothing to plot\n");
        assert!(plot("t", &[('c', vec![(1.0, 1.0)])], "x", "y").contains('c'));
    }
}
