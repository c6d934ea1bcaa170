//! From text to values with positions: the sources of errors, YAML, the tree of values, typed values, names
//! and units, and hints.

pub(crate) mod error;
pub(crate) mod place;
pub(crate) mod plain;
pub(crate) mod problems;
pub(crate) mod source;
pub(crate) mod suggest;
pub(crate) mod tree;
pub(crate) mod typed;
pub(crate) mod units;
pub(crate) mod yaml;
