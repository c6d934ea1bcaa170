//! The configuration of rule worlds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::ConfigProblem;

/// Configuration of rule worlds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RulesConfig {
    /// The world whose problems are drawn, where no files are given.
    pub world: World,
    /// The size of a problem: blocks, balls, or cells.
    pub size: u32,
    /// The number of problems that are drawn for each split.
    pub problems: u32,
    /// Steps in an episode.
    pub steps: u32,
    /// The reward of a step that does not reach the goal; the goal's is 1.
    pub step_reward: f32,
    /// The seed of the problems.
    pub seed: u64,
}

/// The worlds that come with their domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum World {
    /// Blocks on a table, moved by one hand, from one arrangement to another.
    #[default]
    Blocks,
    /// A robot with two grippers, which carries balls between two rooms.
    Gripper,
    /// Cells in a row, with locked doors and their keys.
    Corridor,
}

impl Default for RulesConfig {
    fn default() -> Self {
        Self {
            world: World::default(),
            size: 4,
            problems: 100,
            steps: 50,
            step_reward: 0.0,
            seed: 0,
        }
    }
}

impl RulesConfig {
    /// Refuses settings that are out of range.
    ///
    /// # Errors
    /// Names the field.
    pub fn validate(&self) -> Result<(), ConfigProblem> {
        if !(1..=64).contains(&self.size) {
            return Err(ConfigProblem::new(
                "size",
                "a problem has 1 to 64 blocks, balls or cells",
            ));
        }
        if self.world == World::Blocks && self.size == 1 {
            return Err(ConfigProblem::new("size", "one block has one arrangement only").hint("2 or more have several"));
        }
        if !(1..=100_000).contains(&self.problems) {
            return Err(ConfigProblem::new("problems", "1 to 100000 problems are drawn"));
        }
        if self.steps == 0 {
            return Err(ConfigProblem::new("steps", "it is at least 1"));
        }
        if !self.step_reward.is_finite() {
            return Err(ConfigProblem::new("step_reward", "it is not a finite number"));
        }
        Ok(())
    }
}
