//! Charts: an SVG that scales with the page, follows its colours and needs no script, with its data beside
//! it, from which the script of the page makes an interactive chart.

mod data;
mod draw;
mod model;
mod parts;

pub use crate::figures::Unit;
pub use model::{Axis, Chart, Role, Series};
pub use parts::number;
pub(crate) use parts::{WIDTH, cut, figure, horizontal_grid, legend, split, strips, ticks};

/// The style of charts, and the colours of the whole page.
pub const STYLE: &str = include_str!("chart.css");

/// The script that makes the charts of a page interactive: uPlot, followed by our own.
pub const SCRIPT: &str = concat!(include_str!("uplot/uPlot.iife.min.js"), "\n", include_str!("charts.js"));

/// The style of what the script makes, beside [`crate::html::STYLE`].
pub const SCRIPT_STYLE: &str = include_str!("uplot/uPlot.min.css");

/// True if HTML has charts that the script makes interactive.
pub fn has_charts(html: &str) -> bool {
    html.contains("<figure data-chart=")
}

/// A line chart with a legend; empty if there is nothing to draw.
pub fn lines(title: &str, series: &[Series], axis: Axis, height: f64) -> String {
    Chart::new(title, series.to_vec(), axis).height(height).html()
}
