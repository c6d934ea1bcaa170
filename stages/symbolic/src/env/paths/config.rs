//! The configuration of path finding.

use super::TrainingQueries;
use super::soft_reward::SoftRewardConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::ConfigProblem;

stages_core::settings! {
/// Configuration of path finding.
pub struct PathConfig {
    /// Steps in an episode; staying is one.
    pub hops: u32 = 3,
    /// The sides of a fact that are asked for.
    pub sides: QuerySides = QuerySides::default(),
    /// The largest number of actions of a state, staying among them: of more edges, those to the entities
    /// with the most edges are kept, the others counted; 0 for any.
    pub max_actions: u32 = 200,
    /// The queries of training.
    pub queries: TrainingQueries = TrainingQueries::default(),
    /// In training, the probability with which each edge of a state is left out, drawn again for each step
    /// (after the action dropout of Lin et al., 2018). Staying and the edges to the answer are kept, and so
    /// are all edges where else no action would be left.
    pub edge_dropout: f64 = 0.0,
    /// If false, states and candidates show only relations: what is learned holds for all entities.
    pub show_entities: bool = true,
    /// In training, what ends at other entities than the answer earn by an embedding of the graph's facts;
    /// nothing where it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soft_reward: Option<SoftRewardConfig> = None,
}
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

impl QuerySides {
    /// The number of queries of a fact.
    pub(crate) fn count(self) -> usize {
        match self {
            Self::Tails => 1,
            Self::Both => 2,
        }
    }
}

/// The most steps in an episode.
const MOST_HOPS: u32 = 64;

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
            return Err(ConfigProblem::new(
                "max_actions",
                "a state has at least 2 actions, or 0 for any number",
            )
            .hint("staying is one of them"));
        }
        if !(0.0..1.0).contains(&self.edge_dropout) {
            return Err(ConfigProblem::new(
                "edge_dropout",
                "a probability from 0 to less than 1",
            ));
        }
        self.soft_reward.as_ref().map_or(Ok(()), SoftRewardConfig::validate)
    }
}
