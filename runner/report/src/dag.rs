//! The graph of stages as SVG: a column for each distance from the sources.

use super::html::escape;
use std::fmt::Write as _;

/// A stage in the picture.
pub(crate) struct DagNode {
    pub(crate) id: String,
    /// A second, smaller line.
    pub(crate) note: String,
    /// `ran`, `cached`, `failed` or `skipped`.
    pub(crate) status: String,
    /// Indices of the stages it reads, all smaller than its own.
    pub(crate) needs: Vec<usize>,
}

const BOX_WIDTH: f64 = 150.0;
const BOX_HEIGHT: f64 = 38.0;
const COLUMN: f64 = 190.0;
const ROW: f64 = 52.0;

/// Draws the stages, each after all that it needs.
pub(crate) fn draw(nodes: &[DagNode]) -> String {
    if nodes.is_empty() {
        return String::new();
    }
    let mut column = vec![0_usize; nodes.len()];
    for (i, node) in nodes.iter().enumerate() {
        column[i] = node.needs.iter().map(|&need| column[need] + 1).max().unwrap_or(0);
    }
    let columns = column.iter().max().map_or(1, |last| last + 1);
    let mut filled = vec![0_usize; columns];
    let mut at = Vec::with_capacity(nodes.len());
    for &c in &column {
        at.push((c as f64 * COLUMN + 6.0, filled[c] as f64 * ROW + 6.0));
        filled[c] += 1;
    }
    let width = (columns - 1) as f64 * COLUMN + BOX_WIDTH + 12.0;
    let height = filled.iter().max().map_or(1, |rows| *rows) as f64 * ROW;
    let mut out = format!(
        "<div class=\"wide\"><svg class=\"dag\" style=\"min-width:{}px\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"graph of stages\">",
        width.min(620.0)
    );
    for (i, node) in nodes.iter().enumerate() {
        for &need in &node.needs {
            let (x0, y0) = (at[need].0 + BOX_WIDTH, at[need].1 + BOX_HEIGHT / 2.0);
            let (x1, y1) = (at[i].0, at[i].1 + BOX_HEIGHT / 2.0);
            let middle = (x0 + x1) / 2.0;
            let _ = write!(out, "<path d=\"M{x0} {y0}C{middle} {y0} {middle} {y1} {x1} {y1}\"/>");
        }
    }
    for (node, (x, y)) in nodes.iter().zip(&at) {
        let _ = write!(
            out,
            "<g class=\"{}\"><title>{}: {}</title><rect x=\"{x}\" y=\"{y}\" width=\"{BOX_WIDTH}\" height=\"{BOX_HEIGHT}\" rx=\"6\"/>\
             <text x=\"{}\" y=\"{}\">{}</text><text class=\"sub\" x=\"{}\" y=\"{}\">{}</text></g>",
            escape(&node.status),
            escape(&node.id),
            escape(&node.status),
            x + 8.0,
            y + 16.0,
            escape(&shorten(&node.id, 21)),
            x + 8.0,
            y + 30.0,
            escape(&shorten(&node.note, 25)),
        );
    }
    out.push_str("</svg></div>\n");
    out
}

fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        text.to_owned()
    } else {
        text.chars().take(most - 1).chain(['…']).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_and_edge_is_drawn() {
        let node = |id: &str, needs: &[usize]| DagNode {
            id: id.into(),
            note: "<kind>".into(),
            status: "ran".into(),
            needs: needs.to_vec(),
        };
        let svg = draw(&[node("a", &[]), node("b", &[0]), node("c", &[0, 1])]);
        assert_eq!((svg.matches("<rect").count(), svg.matches("<path").count()), (3, 3));
        assert!(svg.contains("&lt;kind&gt;"));
    }
}
