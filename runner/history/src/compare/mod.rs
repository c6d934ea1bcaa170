//! Runs and points of matrices side by side: parameters that differ, metrics with mean and spread, learning
//! curves.
//!
//! `select` resolves the named points, `point` is one of them with its figures and parameters, `parameters`
//! finds those that differ, `comparison` groups repetitions (points that differ only in a seed), `spread` and
//! `curves` aggregate them. [`json`] is the comparison as a document.

mod comparison;
mod curves;
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
