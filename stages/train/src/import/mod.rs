//! Policies that other libraries trained.

pub(crate) mod stage;
