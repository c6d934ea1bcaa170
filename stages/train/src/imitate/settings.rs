//! The settings of `train/imitate`.

use crate::checks;
use crate::network::{MlpLstmPolicy, MlpPolicy, Network, PolicyKwargs, TransformerPolicy};
use crate::settings::{Common, RolloutSettings, TrainingSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::{ConfigProblem, Schedule};

/// The student's network: one of these, a network without memory if none is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StudentPolicy {
    /// Hidden layers only, as in `train/ppo`.
    pub mlp: Option<MlpPolicy>,
    /// An LSTM, as in `train/recurrent_ppo`.
    pub lstm: Option<MlpLstmPolicy>,
    /// A transformer, as in `train/transformer_ppo`.
    pub transformer: Option<TransformerPolicy>,
}

impl PolicyKwargs for StudentPolicy {
    fn network(&self) -> Result<Network, ConfigProblem> {
        match (&self.mlp, &self.lstm, &self.transformer) {
            (None, None, None) => MlpPolicy::default().network(),
            (Some(policy), None, None) => policy.network(),
            (None, Some(policy), None) => policy.network(),
            (None, None, Some(policy)) => policy.network(),
            _ => Err(ConfigProblem::new("policy_kwargs", "has more than one network")
                .hint("keep one of `mlp`, `lstm` and `transformer`")),
        }
    }
}

stages_core::flat_settings! {
    /// Configuration of `train/imitate`.
    pub struct ImitateConfig {
        /// The share of the steps in which the teacher acts; in the others the student does, and the
        /// teacher labels the action. `1` is behaviour cloning, `{ linear: [1, 0] }` is DAgger.
        pub teacher_share: Schedule = Schedule::Constant(1.0),
        /// Weight of the value loss, the mean squared difference from the teacher's values.
        pub vf_coef: f64 = 0.5,
        /// The rollouts and minibatches.
        #[serde(flatten)]
        pub rollouts: RolloutSettings = RolloutSettings {
            batch_size: 256,
            ..Default::default()
        },
        /// The settings that every algorithm has.
        #[serde(flatten)]
        pub training: TrainingSettings,
        /// The network.
        pub policy_kwargs: StudentPolicy,
    }
}

/// The checked settings of imitation.
#[derive(Clone, Debug)]
pub struct ImitationSettings {
    pub(crate) common: Common,
    pub(crate) teacher_share: Schedule,
    pub(crate) vf_coef: f64,
}

impl ImitateConfig {
    /// Checks the settings.
    pub(crate) fn settings(&self) -> Result<ImitationSettings, ConfigProblem> {
        let common = Common::checked(self.training, self.rollouts, &self.policy_kwargs)?;
        common.check_sequences("n_steps", common.rollouts.n_steps)?;
        checks::share("teacher_share", self.teacher_share.at(0.0))?;
        checks::share("teacher_share", self.teacher_share.at(1.0))?;
        checks::weight("vf_coef", self.vf_coef)?;
        Ok(ImitationSettings {
            common,
            teacher_share: self.teacher_share,
            vf_coef: self.vf_coef,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_name_their_field() {
        let field = |json: serde_json::Value| {
            let config: ImitateConfig = serde_json::from_value(json).unwrap();
            config.settings().err().map(|problem| problem.field)
        };
        let two = serde_json::json!({ "total_timesteps": 9, "policy_kwargs": { "lstm": {}, "mlp": {} } });
        assert_eq!(field(two).as_deref(), Some("policy_kwargs"));
        let share = serde_json::json!({ "total_timesteps": 9, "teacher_share": { "linear": [1.5, 0] } });
        assert_eq!(field(share).as_deref(), Some("teacher_share"));
        assert_eq!(field(serde_json::json!({})).as_deref(), Some("total_timesteps"));
        assert_eq!(field(serde_json::json!({ "total_timesteps": 9 })), None);
    }
}
