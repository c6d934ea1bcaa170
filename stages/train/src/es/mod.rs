//! Evolution strategies: [`algorithm`], from top to bottom; the search over flat parameters ([`strategy`]),
//! and the settings. Populations are evaluated by `evaluator.rs`.

pub(crate) mod algorithm;
pub mod settings;
pub(crate) mod strategy;
