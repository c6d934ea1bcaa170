//! The settings of validation during training.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::ConfigProblem;

/// Validation, and the choice of the policy that is handed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ValidationConfig {
    /// Environment steps between validations, at the end of the rollout that reaches them; 0 for none, and
    /// the last policy. By default 20,000 where the environment holds data out for validation. Where it
    /// draws its episodes (`env/classic`, `env/lookup`, `env/hedging`), by default 10,000, with greedy
    /// actions alone, as long as validation takes at most a twentieth of training's forward and backward
    /// passes; and none in a training of less than 10,000 steps. Elsewhere (`env/python`) none by default.
    /// The last policy is always validated.
    pub every: Option<u64>,
    /// The number of episodes. By default all that the environment holds out, of which it is the most; 16
    /// where environments have no dates, and draw other random numbers for validation.
    pub episodes: Option<usize>,
    /// The metric that selects.
    pub metric: ValidationMetric,
    /// The actions of the policy whose metric selects. Both are in the metrics.
    pub mode: ValidationMode,
    /// Early stopping: training ends after this many validations in turn without improvement; 0 for never.
    pub patience: u64,
}

/// A metric by which a policy is selected: the larger, the better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ValidationMetric {
    /// The mean over episodes of the sum of rewards.
    #[default]
    Return,
    /// The mean reward of a step.
    Reward,
}

/// The choice of actions in validation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ValidationMode {
    /// The likeliest action; where actions are continuous, their mean.
    #[default]
    Greedy,
    /// An action drawn from the policy's distribution.
    Drawn,
}

impl ValidationConfig {
    /// Checks the settings.
    pub(crate) fn check(&self) -> Result<(), ConfigProblem> {
        ConfigProblem::new("validation.episodes", "must be at least 1")
            .hint("set `validation: { every: 0 }` to train without validation")
            .when(self.episodes == Some(0))?;
        Ok(())
    }

    /// The name of the metric that selects.
    pub(crate) fn selects_by(&self) -> &'static str {
        match (self.metric, self.mode) {
            (ValidationMetric::Return, ValidationMode::Greedy) => "validation/return_greedy",
            (ValidationMetric::Return, ValidationMode::Drawn) => "validation/return_drawn",
            (ValidationMetric::Reward, ValidationMode::Greedy) => "validation/reward_greedy",
            (ValidationMetric::Reward, ValidationMode::Drawn) => "validation/reward_drawn",
        }
    }
}
