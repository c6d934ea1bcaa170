//! SVG drawing of a task graph: a column for each layer of stages, drawn as boxes, and a curve for each need.

use crate::TaskGraph;
use std::fmt::Write as _;

/// A stage in the drawing.
pub struct SvgNode {
    /// The stage's id, shown in the first line of its box.
    pub id: String,
    /// The second, smaller line in the stage's box.
    pub note: String,
    /// The stage's status, used as the class of its box for a style sheet; empty if there is none.
    pub class: String,
    /// The address of the stage's page, to which its box links.
    pub href: Option<String>,
}

const BOX_WIDTH: f64 = 150.0;
const BOX_HEIGHT: f64 = 38.0;
const COLUMN: f64 = 190.0;
const ROW: f64 = 52.0;
const MARGIN: f64 = 6.0;

/// A drawing to be embedded in an `<svg>` element.
pub struct Drawing {
    /// The drawing's width, in SVG user units.
    pub width: f64,
    /// The drawing's height, in SVG user units.
    pub height: f64,
    /// The SVG elements: paths, boxes and texts.
    pub elements: String,
}

/// Draws the stages of a graph; `nodes` are in the order of the graph's indices.
pub fn draw(nodes: &[SvgNode], graph: &TaskGraph) -> Drawing {
    let layers = graph.layers();
    let columns = layers.iter().max().map_or(1, |last| last + 1);
    let mut filled = vec![0_usize; columns];
    let mut at = Vec::with_capacity(nodes.len());
    for &layer in &layers {
        at.push((layer as f64 * COLUMN + MARGIN, filled[layer] as f64 * ROW + MARGIN));
        filled[layer] += 1;
    }
    let mut out = String::new();
    for (i, &(x1, y)) in at.iter().enumerate() {
        let mut needs: Vec<usize> = graph.needs(i).collect();
        needs.sort_unstable();
        for need in needs {
            let (x0, y0) = (at[need].0 + BOX_WIDTH, at[need].1 + BOX_HEIGHT / 2.0);
            let y1 = y + BOX_HEIGHT / 2.0;
            let gap = COLUMN - BOX_WIDTH;
            // A curve from a box to the next column, and back from the last column before its end; between
            // them, it follows the space between two rows, where there are no boxes.
            let curve = |from: f64, y0: f64, to: f64, y1: f64| {
                let middle = (from + to) / 2.0;
                format!("C{middle} {y0} {middle} {y1} {to} {y1}")
            };
            let path = if layers[i] == layers[need] + 1 {
                curve(x0, y0, x1, y1)
            } else {
                let lane = y0.min(y1) + ROW / 2.0;
                let (after, before) = (x0 + gap, x1 - gap);
                format!(
                    "{}L{before} {lane}{}",
                    curve(x0, y0, after, lane),
                    curve(before, lane, x1, y1)
                )
            };
            let _ = write!(out, "<path d=\"M{x0} {y0}{path}\"/>");
        }
    }
    for (node, (x, y)) in nodes.iter().zip(&at) {
        let title = match node.class.as_str() {
            "" => node.id.clone(),
            class => format!("{}: {class}", node.id),
        };
        if let Some(href) = &node.href {
            let _ = write!(out, "<a href=\"{}\">", escape(href));
        }
        let _ = write!(
            out,
            "<g class=\"{}\"><title>{}</title><rect x=\"{x}\" y=\"{y}\" width=\"{BOX_WIDTH}\" \
             height=\"{BOX_HEIGHT}\" rx=\"6\"/>\
             <text x=\"{}\" y=\"{}\">{}</text><text class=\"sub\" x=\"{}\" y=\"{}\">{}</text></g>",
            escape(&node.class),
            escape(&title),
            x + 8.0,
            y + 16.0,
            escape(&shorten(&node.id, 21)),
            x + 8.0,
            y + 30.0,
            escape(&shorten(&node.note, 25)),
        );
        if node.href.is_some() {
            out.push_str("</a>");
        }
    }
    Drawing {
        width: (columns - 1) as f64 * COLUMN + BOX_WIDTH + 2.0 * MARGIN,
        height: filled.iter().max().map_or(1, |rows| *rows) as f64 * ROW,
        elements: out,
    }
}

const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#1c2024}.sub{font-size:10px;fill:#667}\
rect{fill:#f6f7f9;stroke:#9aa3ad}path{fill:none;stroke:#9aa3ad;stroke-width:1.4}\
@media \
(prefers-color-scheme:dark){text{fill:#e4e7ea}.sub{fill:#9aa3ad}rect{fill:#1d2126;stroke:#667}path{stroke:#667}}";

impl Drawing {
    /// The drawing as a self-contained SVG file.
    pub fn file(&self, title: &str) -> String {
        let Self {
            width,
            height,
            elements,
        } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 \
             {width} {height}\" \
             role=\"img\"><title>{}</title><style>{STYLE}</style>{elements}</svg>\n",
            escape(title)
        )
    }
}

/// Escapes text for XML content and attributes; characters not allowed in XML are replaced.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() && !matches!(c, '\t' | '\n') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
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
    fn every_stage_and_need_is_drawn() {
        let node = |id: &str| SvgNode {
            id: id.into(),
            note: "<kind>\u{1b}".into(),
            class: "ran".into(),
            href: None,
        };
        let graph = TaskGraph::new(3, [(1, 0), (2, 0), (2, 1)]);
        let drawing = draw(&[node("a"), node("b & \"c\""), node("d")], &graph);
        let file = drawing.file("p & q");
        assert_eq!((file.matches("<rect").count(), file.matches("<path").count()), (3, 3));
        assert!(
            file.contains("&lt;kind&gt;\u{fffd}") && file.contains("b &amp; &quot;c&quot;"),
            "{file}"
        );
        assert!(file.contains("<title>p &amp; q</title>"), "{file}");
        // The need that skips a column runs below its box, which ends at 44.
        assert!(
            file.contains("M156 25C176 25 176 51 196 51L346 51C366 51 366 25 386 25"),
            "{file}"
        );
        // Three columns, each one stage high.
        assert_eq!((drawing.width, drawing.height), (2.0 * 190.0 + 162.0, 52.0));
    }
}
