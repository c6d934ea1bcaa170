//! Runs and points of matrices side by side: parameters that differ, metrics with mean and spread, learning
//! curves.
//!
//! `select` resolves the named points, `point` is one of them with its figures and parameters, `parameters`
//! finds those that differ, `groups` puts repetitions together (points that differ only in a seed),
//! `comparison`, `spread` and `curves` aggregate them. `axes` is an index of points. [`json`] is the
//! comparison as a document.

mod axes;
mod comparison;
mod curves;
mod groups;
mod json;
mod parameters;
mod point;
mod select;
mod spread;

pub use comparison::{Comparison, Group, Options, Outcome};
pub use curves::{MeanCurve, mean as mean_curve};
pub use json::json;
pub use parameters::rank;
pub use point::{Measured, Point};
pub use select::select;
pub use spread::Spread;
