//! The configuration of rule worlds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::ConfigProblem;
use stages_knowledge::Split;

stages_core::settings! {
    /// Configuration of rule worlds.
    pub struct RulesConfig {
        /// The world whose problems are drawn, where no files are given.
        pub world: World = World::default(),
        /// The size of a problem: blocks, balls, or cells.
        pub size: u32 = 4,
        /// The number of problems that are drawn for each split.
        pub problems: u32 = 100,
        /// Steps in an episode.
        pub steps: u32 = 50,
        /// The reward of a step that does not reach the goal; the goal's is 1.
        pub step_reward: f32 = 0.0,
        /// The seed of the problems.
        pub seed: u64 = 0,
        /// In place of a world: the PDDL file of a domain, relative to the pipeline.
        pub domain: String = String::new(),
        /// With `domain`: PDDL files of problems to train on, or directories of them.
        pub train: Vec<String> = Vec::new(),
        /// With `domain`: those to choose settings by.
        pub valid: Vec<String> = Vec::new(),
        /// With `domain`: those to test on.
        pub test: Vec<String> = Vec::new(),
    }
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

impl RulesConfig {
    /// Returns whether the domain and its problems are files.
    pub fn is_of_files(&self) -> bool {
        !self.domain.is_empty()
    }

    /// The fields that name files of problems, by split.
    pub fn problem_files(&self) -> [(Split, &[String]); 3] {
        [
            (Split::Train, &self.train),
            (Split::Valid, &self.valid),
            (Split::Test, &self.test),
        ]
    }

    /// Refuses settings that are out of range, or of a world beside files.
    ///
    /// # Errors
    /// Names the field.
    pub fn validate(&self) -> Result<(), ConfigProblem> {
        let default = Self::default();
        let files = self.problem_files().into_iter().find(|(_, files)| !files.is_empty());
        if self.is_of_files() {
            let world_settings = [
                ("world", self.world != default.world),
                ("size", self.size != default.size),
                ("problems", self.problems != default.problems),
                ("seed", self.seed != default.seed),
            ];
            if let Some((field, _)) = world_settings.into_iter().find(|(_, is_given)| *is_given) {
                return Err(ConfigProblem::new(
                    field,
                    "problems are either drawn or read from files, and `domain` is given",
                )
                .hint(format!("remove `{field}`, or remove `domain` and its problems")));
            }
            if files.is_none() {
                return Err(ConfigProblem::new("domain", "no problems are given")
                    .hint("write `train: [problems/train]`, files or directories of them"));
            }
        } else if let Some((split, _)) = files {
            return Err(
                ConfigProblem::new(split.name(), "problems are given without their domain")
                    .hint("write `domain: domain.pddl`"),
            );
        }
        if !(1..=64).contains(&self.size) {
            return Err(ConfigProblem::new(
                "size",
                "a problem has 1 to 64 blocks, balls or cells",
            ));
        }
        if self.world == World::Blocks && self.size == 1 {
            return Err(ConfigProblem::new("size", "one block has one arrangement only")
                .hint("2 or more have several"));
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
