//! The settings of `train/ppo`, `train/recurrent_ppo` and `train/transformer_ppo`, named and set as
//! stable-baselines3 2.9 and sb3-contrib 2.9 do.

use crate::checks::check;
use crate::network::{MlpLstmPolicy, MlpPolicy, TransformerPolicy};
use crate::settings::{Common, RolloutSettings, SequenceSettings, TrainingSettings};
use stages_core::{ConfigProblem, Schedule};

stages_core::flat_settings! {
    /// PPO's own settings.
    #[derive(Copy)]
    pub struct PpoHyperparameters {
        /// Discount per step.
        pub gamma: f64 = 0.99,
        /// The lambda of generalised advantage estimation.
        pub gae_lambda: f64 = 0.95,
        /// Bound of |ratio - 1| in the policy's loss.
        pub clip_range: Schedule = Schedule::Constant(0.2),
        /// Bound of the change of a value, in units of the (normalised) return; none by default.
        pub clip_range_vf: Option<Schedule>,
        /// If true, advantages are normalised within each minibatch.
        pub normalize_advantage: bool = true,
        /// Weight of the entropy bonus.
        pub ent_coef: f64 = 0.0,
        /// Weight of the value loss.
        pub vf_coef: f64 = 0.5,
        /// Early stopping: skips the remaining updates on a rollout once the approximate KL divergence
        /// exceeds 1.5 times this value; off by default.
        pub target_kl: Option<f64>,
        /// If true, observations are normalised by running mean and variance (to within 10), frozen in
        /// the policy.
        pub normalize_obs: bool,
        /// If true, rewards are divided by the running standard deviation of their return discounted by
        /// `gamma` (to within 10).
        pub normalize_reward: bool,
    }

    /// Configuration of `train/ppo`.
    pub struct PpoConfig {
        /// PPO's own settings.
        #[serde(flatten)]
        pub ppo: PpoHyperparameters,
        /// The rollouts and minibatches.
        #[serde(flatten)]
        pub rollouts: RolloutSettings = RolloutSettings {
            n_steps: 2048,
            batch_size: 64,
            ..Default::default()
        },
        /// The settings that every algorithm has.
        #[serde(flatten)]
        pub training: TrainingSettings,
        /// The network.
        pub policy_kwargs: MlpPolicy,
    }

    /// Configuration of `train/recurrent_ppo`.
    pub struct RecurrentPpoConfig {
        /// PPO's own settings.
        #[serde(flatten)]
        pub ppo: PpoHyperparameters,
        /// The sequences into which a rollout is cut.
        #[serde(flatten)]
        pub sequences: SequenceSettings,
        /// The rollouts and minibatches.
        #[serde(flatten)]
        pub rollouts: RolloutSettings,
        /// The settings that every algorithm has.
        #[serde(flatten)]
        pub training: TrainingSettings,
        /// The network.
        pub policy_kwargs: MlpLstmPolicy,
    }

    /// Configuration of `train/transformer_ppo`.
    pub struct TransformerPpoConfig {
        /// PPO's own settings.
        #[serde(flatten)]
        pub ppo: PpoHyperparameters,
        /// The rollouts and minibatches.
        #[serde(flatten)]
        pub rollouts: RolloutSettings,
        /// The settings that every algorithm has.
        #[serde(flatten)]
        pub training: TrainingSettings,
        /// The network.
        pub policy_kwargs: TransformerPolicy,
    }
}

/// The checked settings of PPO.
#[derive(Clone, Debug)]
pub struct PpoSettings {
    pub(crate) common: Common,
    pub(crate) ppo: PpoHyperparameters,
    pub(crate) sequences: SequenceSettings,
}

impl PpoConfig {
    /// Checks the settings.
    pub(crate) fn settings(&self) -> Result<PpoSettings, ConfigProblem> {
        let common = Common::checked(self.training, self.rollouts, &self.policy_kwargs)?;
        PpoSettings::checked(common, self.ppo, SequenceSettings::default())
    }
}

impl RecurrentPpoConfig {
    /// Checks the settings.
    pub(crate) fn settings(&self) -> Result<PpoSettings, ConfigProblem> {
        let common = Common::checked(self.training, self.rollouts, &self.policy_kwargs)?;
        PpoSettings::checked(common, self.ppo, self.sequences)
    }
}

impl TransformerPpoConfig {
    /// Checks the settings.
    pub(crate) fn settings(&self) -> Result<PpoSettings, ConfigProblem> {
        let common = Common::checked(self.training, self.rollouts, &self.policy_kwargs)?;
        PpoSettings::checked(common, self.ppo, SequenceSettings::default())
    }
}

impl PpoSettings {
    fn check_sequences(&self) -> Result<(), ConfigProblem> {
        let n_steps = self.common.rollouts.n_steps;
        let SequenceSettings {
            sequence_length,
            burn_in,
        } = self.sequences;
        let Some(length) = sequence_length else {
            ConfigProblem::new("burn_in", "a whole rollout has no steps before it")
                .hint("set `sequence_length`, too")
                .when(burn_in > 0)?;
            return self.common.check_sequences("n_steps", n_steps);
        };
        ConfigProblem::new(
            "sequence_length",
            format!("n_steps ({n_steps}) is not a multiple of {length}"),
        )
        .hint("a rollout is cut into whole sequences: choose a divisor of n_steps")
        .when(length == 0 || !n_steps.is_multiple_of(length))?;
        ConfigProblem::new("burn_in", format!("no sequence has {burn_in} steps before it"))
            .hint(format!(
                "the last of {length} steps in a rollout of {n_steps} has {}; raise n_steps",
                n_steps - length
            ))
            .when(burn_in > n_steps - length)?;
        self.common.check_sequences("sequence_length", length)
    }

    fn checked(
        common: Common,
        ppo: PpoHyperparameters,
        sequences: SequenceSettings,
    ) -> Result<Self, ConfigProblem> {
        let settings = Self {
            common,
            ppo,
            sequences,
        };
        settings.check_sequences()?;
        ConfigProblem::new(
            "normalize_advantage",
            "advantages of a single sample cannot be normalised",
        )
        .hint("raise n_envs x n_steps and batch_size to at least 2")
        .when(
            ppo.normalize_advantage
                && (settings.common.rollout() < 2 || settings.common.rollouts.batch_size < 2),
        )?;
        check!(
            ppo; share: gamma, gae_lambda; weight: ent_coef, vf_coef; positive: target_kl;
            schedule: clip_range, clip_range_vf;
        );
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_name_their_field() {
        let field = |change: &dyn Fn(&mut RecurrentPpoConfig)| {
            let mut config = RecurrentPpoConfig::default();
            config.training.total_timesteps = 1000;
            change(&mut config);
            config.settings().err().map(|problem| problem.field)
        };
        assert_eq!(field(&|_| {}), None);
        assert_eq!(
            field(&|c| c.training.total_timesteps = 0).as_deref(),
            Some("total_timesteps")
        );
        assert_eq!(field(&|c| c.rollouts.batch_size = 200).as_deref(), Some("batch_size"));
        assert_eq!(field(&|c| c.rollouts.batch_size = 64).as_deref(), Some("batch_size"));
        assert_eq!(field(&|c| c.rollouts.n_steps = 0).as_deref(), Some("n_steps"));
        assert_eq!(
            field(&|c| (c.sequences.sequence_length, c.sequences.burn_in) = (Some(32), 96)),
            None
        );
        assert_eq!(
            field(&|c| (c.sequences.sequence_length, c.rollouts.batch_size) = (Some(32), 96)),
            None
        );
        for wrong in [0, 48, 256] {
            let field = field(&|c| c.sequences.sequence_length = Some(wrong));
            assert_eq!(field.as_deref(), Some("sequence_length"), "{wrong}");
        }
        assert_eq!(
            field(&|c| (c.sequences.sequence_length, c.rollouts.batch_size) = (Some(32), 80)).as_deref(),
            Some("batch_size")
        );
        assert_eq!(
            field(&|c| (c.sequences.sequence_length, c.sequences.burn_in) = (Some(32), 97)).as_deref(),
            Some("burn_in")
        );
        assert_eq!(field(&|c| c.sequences.burn_in = 8).as_deref(), Some("burn_in"));
        assert_eq!(field(&|c| c.ppo.gamma = 1.5).as_deref(), Some("gamma"));
        assert_eq!(field(&|c| c.ppo.gae_lambda = f64::NAN).as_deref(), Some("gae_lambda"));
        assert_eq!(
            field(&|c| c.training.learning_rate = Schedule::Linear(1.0, -1.0)).as_deref(),
            Some("learning_rate")
        );
        assert_eq!(
            field(&|c| c.policy_kwargs.shared_lstm = true).as_deref(),
            Some("policy_kwargs.shared_lstm")
        );
        assert_eq!(
            field(&|c| c.policy_kwargs.n_lstm_layers = 0).as_deref(),
            Some("policy_kwargs.n_lstm_layers")
        );
        assert_eq!(
            field(&|c| c.policy_kwargs.net_arch.pi = vec![0]).as_deref(),
            Some("policy_kwargs.net_arch")
        );
        let field = |change: &dyn Fn(&mut TransformerPpoConfig)| {
            let mut config = TransformerPpoConfig::default();
            config.training.total_timesteps = 1000;
            change(&mut config);
            config.settings().err().map(|problem| problem.field)
        };
        assert_eq!(field(&|_| {}), None);
        assert_eq!(
            field(&|c| c.policy_kwargs.window = 0).as_deref(),
            Some("policy_kwargs.window")
        );
        assert_eq!(
            field(&|c| c.policy_kwargs.n_heads = 3).as_deref(),
            Some("policy_kwargs.d_model")
        );
        assert_eq!(field(&|c| c.rollouts.batch_size = 64).as_deref(), Some("batch_size"));
    }
}
