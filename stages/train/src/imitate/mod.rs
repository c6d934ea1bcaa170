//! Imitation of a given policy: [`algorithm`], from top to bottom, and its settings and stage kind.

pub(crate) mod algorithm;
pub mod settings;
pub mod stage;
