//! The configuration of path finding.

use super::TrainingQueries;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::ConfigProblem;

/// Configuration of path finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PathConfig {
    /// Steps in an episode; staying is one.
    pub hops: u32,
    /// The sides of a fact that are asked for.
    pub sides: QuerySides,
    /// The largest number of actions of a state, staying among them: of more edges, those to the entities with the most edges are kept, the others counted; 0 for any.
    pub max_actions: u32,
    /// The queries of training.
    pub queries: TrainingQueries,
}

/// The sides of a fact that are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuerySides {
    /// The tail, from the head along the relation.
    #[default]
    Tails,
    /// The tail, then the head, from the tail along the inverse relation.
    Both,
}

/// The most steps in an episode.
const MOST_HOPS: u32 = 64;

impl Default for PathConfig {
    fn default() -> Self {
        Self {
            hops: 3,
            sides: QuerySides::default(),
            max_actions: 200,
            queries: TrainingQueries::default(),
        }
    }
}

impl PathConfig {
    /// Refuses settings that are out of range.
    ///
    /// # Errors
    /// Names the field.
    pub fn validate(&self) -> Result<(), ConfigProblem> {
        if !(1..=MOST_HOPS).contains(&self.hops) {
            return Err(ConfigProblem::new(
                "hops",
                format!("an episode has 1 to {MOST_HOPS} steps"),
            ));
        }
        if self.max_actions == 1 {
            return Err(
                ConfigProblem::new("max_actions", "a state has at least 2 actions, or 0 for any number")
                    .hint("staying is one of them"),
            );
        }
        Ok(())
    }
}
