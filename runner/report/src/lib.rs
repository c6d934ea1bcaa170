//! Reporters of events, the HTML report of a run, its metrics as files, and comparisons of runs as a page and
//! as tables.

pub mod chart;
mod comparison_page;
mod comparison_table;
mod data;
mod evaluation;
pub mod html;
mod metric_files;
mod paths;
mod population;
mod programs;
mod reasoning;
pub mod reporter;
mod run_page;
mod stage_graph;
mod training;

pub use comparison_page::page as comparison_page;
pub use comparison_table::{csv, markdown, text};
pub use metric_files::{MetricFiles, write_metric_files};
pub use run_page::{write, write_within};
pub use stage_graph::{stage_graph, status_of};
pub use training::learning_curves;
