//! Means of tests.

pub(crate) mod flop_count;
