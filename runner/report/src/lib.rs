//! Reporters of events, the HTML report of a run, its metrics as files, comparisons of runs as a page and as
//! tables, paper accounts, previews of artifacts, messages on runs that have ended, and servers that follow
//! runs.

mod asked;
pub mod chart;
mod comparison_page;
mod comparison_rows;
mod comparison_settings;
mod comparison_table;
mod data;
mod days;
mod evaluation;
mod figure_table;
pub mod figures;
mod finding;
mod fold;
pub mod glossary;
pub mod html;
mod live_run;
mod markdown;
mod metric_files;
pub mod notify;
mod paper;
mod paths;
mod plot;
mod population;
mod preview;
mod programs;
mod quality;
mod reasoning;
mod replace;
pub mod reporter;
mod results;
mod run_page;
pub mod search;
mod spark;
mod stage_graph;
mod summary;
mod table_view;
pub mod track;
mod training;
mod web;

pub use comparison_page::page as comparison_page;
pub use comparison_table::{csv, markdown, text};
pub use data::findings_table;
pub use days::rows_by_day;
pub use finding::{answers, finding};
pub use live_run::LiveRun;
pub use metric_files::{MetricFiles, write_metric_files};
pub use paper::{paper_account, paper_state};
pub use plot::plot;
pub use preview::{Preview, preview};
pub use quality::quality_table;
pub use replace::replace;
pub use results::results_table;
pub use run_page::{write, write_within};
pub use spark::{spark_curve, spark_svg};
pub use stage_graph::{BoxLook, stage_graph, stage_graph_with, status_of};
pub use summary::{Summary, SummaryConfig};
pub use table_view::{
    BINS, ColumnView, Condition, MOST_DISTINCT, TableQuery, TableView, Values, read_table, table_view,
};
pub use training::learning_curves;
