//! Evolution and gradient together: [`algorithm`], from top to bottom; the genetic algorithm ([`genetic`])
//! and the cross-entropy method ([`cross_entropy`]) over flat parameters, and the settings.

pub(crate) mod algorithm;
mod cross_entropy;
mod genetic;
pub mod settings;
