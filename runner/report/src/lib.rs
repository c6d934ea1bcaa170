//! Reporters of events, the HTML report of a run, and comparisons of runs as a page and as tables.

pub mod chart;
mod comparison_page;
mod comparison_table;
mod data;
mod evaluation;
pub mod html;
mod paths;
mod population;
mod programs;
pub mod reporter;
mod run_page;
mod stage_graph;
mod training;

pub use comparison_page::page as comparison_page;
pub use comparison_table::{csv, markdown, text};
pub use run_page::{write, write_within};
pub use stage_graph::{stage_graph, status_of};
pub use training::learning_curves;
