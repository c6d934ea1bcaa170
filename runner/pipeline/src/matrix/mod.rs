//! The matrix of a stage: axes, ranges, draws, folds, and the points that they expand to.

pub(crate) mod axes;
pub(crate) mod folds;
pub(crate) mod point;
pub(crate) mod points;
pub(crate) mod sample;

pub(crate) use axes::{Matrix, Range};
pub(crate) use folds::Folds;
pub(crate) use point::{MOST_NODES, Point};
pub(crate) use points::{Folders, Matching};
