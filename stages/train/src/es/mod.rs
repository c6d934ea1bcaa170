//! Evolution strategies: [`algorithm`], from top to bottom; the search over flat parameters ([`strategy`]),
//! the settings and the stage kind. Populations are evaluated by `evaluator.rs`.

pub(crate) mod algorithm;
pub mod settings;
pub mod stage;
pub(crate) mod strategy;
