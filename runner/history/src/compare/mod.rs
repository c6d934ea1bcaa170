//! Runs and points of matrices side by side: parameters that differ, metrics with mean and spread, learning curves.
//!
//! `select` finds the points that people name, `point` is one of them with its figures and parameters, `parameters` says which
//! differ, `comparison` puts repetitions (points that differ in a seed alone) in groups, `spread` and `curves` say what they come
//! to. [`json`] writes it as a document.

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
