//! Evolution strategies: [`algorithm`], from top to bottom; the search over flat parameters ([`strategy`]), the evaluation of a population
//! ([`evaluator`]), the settings and the stage kind.

pub(crate) mod algorithm;
pub(crate) mod evaluator;
pub mod settings;
pub mod stage;
pub(crate) mod strategy;
