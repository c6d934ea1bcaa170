//! Imitation of a given policy: [`algorithm`], from top to bottom, and its settings.

pub(crate) mod algorithm;
pub mod settings;
