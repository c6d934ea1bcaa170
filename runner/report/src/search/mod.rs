//! Searches over settings: the search by its name or its run, its figures, and its charts.
//!
//! | module | |
//! | --- | --- |
//! | `find` | searches by name, and the search of a run |
//! | `view`, `tables` | figures and tables, as text and as JSON |
//! | `page` | the same as HTML, with charts |
//! | `scatter`, `parallel`, `scale` | charts of trials |
//! | `points` | the same charts of any runs by their settings |
//! | `overfitting` | the metrics of `evaluate/overfitting` in words |

mod find;
mod overfitting;
mod page;
mod parallel;
mod points;
mod scale;
mod scatter;
mod tables;
mod view;

pub use find::{SearchOfRun, find, of_run};
pub(crate) use overfitting::section as overfitting;
pub use page::section;
pub use points::{Point, parallel_coordinates, scatter};
pub use tables::Texts;
pub use view::View;

/// The axis of trials: the stages of trial 17 are `STAGE[…,trial=17]`.
pub const TRIAL: &str = "trial";
