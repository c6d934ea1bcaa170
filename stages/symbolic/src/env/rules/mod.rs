//! Rule worlds: ground atoms, and actions with preconditions and effects, from a STRIPS subset of PDDL.
//!
//! [`RuleTask`] holds a domain and its ground problems, [`RuleEnvs`] steps a range of environments.

mod config;
mod env;
mod ground;
pub mod pddl;
mod search;
#[cfg(test)]
mod tests;
mod texts;
mod worlds;

pub use config::{RulesConfig, World};
pub use env::{FinishedPlan, RuleEnvs, RuleEpisode, RuleTask};
pub use search::shortest_plan;
pub use texts::RuleTexts;
