//! The settings of `train/a2c`, named and set as stable-baselines3 2.9 does.

use crate::checks::check;
use crate::network::MlpPolicy;
use crate::ppo::settings::{PpoHyperparameters, PpoSettings};
use crate::settings::{Common, RolloutSettings, SequenceSettings, TrainingSettings};
use stages_core::{ConfigProblem, Schedule};

stages_core::flat_settings! {
    /// Configuration of `train/a2c`.
    pub struct A2cConfig {
        /// Steps of each environment in a rollout, of `n_envs` x `n_steps` samples.
        pub n_steps: usize = 5,
        /// Discount per step.
        pub gamma: f64 = 0.99,
        /// The lambda of generalised advantage estimation.
        pub gae_lambda: f64 = 1.0,
        /// Weight of the entropy bonus.
        pub ent_coef: f64 = 0.0,
        /// Weight of the value loss.
        pub vf_coef: f64 = 0.5,
        /// Bound of the gradient's Euclidean norm.
        pub max_grad_norm: f64 = 0.5,
        /// If true, the optimiser is RMSprop, else Adam.
        pub use_rms_prop: bool = true,
        /// RMSprop's epsilon.
        pub rms_prop_eps: f64 = 1e-5,
        /// If true, advantages are normalised within each rollout.
        pub normalize_advantage: bool = false,
        /// If true, observations are normalised by running mean and variance (to within 10), frozen in the
        /// policy.
        pub normalize_obs: bool = false,
        /// If true, rewards are divided by the running standard deviation of their return discounted by
        /// `gamma` (to within 10).
        pub normalize_reward: bool = false,
        /// The settings that every algorithm has.
        #[serde(flatten)]
        pub training: TrainingSettings = TrainingSettings {
            learning_rate: Schedule::Constant(7e-4),
            // A rollout takes microseconds, and a report of it as many.
            log_interval: 100,
            ..Default::default()
        },
        /// The network.
        pub policy_kwargs: MlpPolicy,
    }
}

/// The checked settings: those of the rollout, which PPO shares, and of the optimiser.
#[derive(Clone, Debug)]
pub struct A2cSettings {
    pub(crate) rollout: PpoSettings,
    /// RMSprop's epsilon; `None` for Adam.
    pub(crate) rms_prop_eps: Option<f64>,
}

impl A2cConfig {
    /// Checks the settings.
    pub(crate) fn settings(&self) -> Result<A2cSettings, ConfigProblem> {
        let batch_size = self.training.n_envs.saturating_mul(self.n_steps);
        let rollouts = RolloutSettings::once(self.n_steps, batch_size, self.max_grad_norm);
        let common = Common::checked(self.training, rollouts, &self.policy_kwargs)?;
        ConfigProblem::new(
            "normalize_advantage",
            "advantages of a single sample cannot be normalised",
        )
        .hint("raise n_envs x n_steps to at least 2")
        .when(self.normalize_advantage && batch_size < 2)?;
        check!(self; share: gamma, gae_lambda; weight: ent_coef, vf_coef; positive: rms_prop_eps;);
        Ok(A2cSettings {
            rollout: PpoSettings {
                common,
                ppo: PpoHyperparameters {
                    gamma: self.gamma,
                    gae_lambda: self.gae_lambda,
                    clip_range: Schedule::Constant(f64::INFINITY),
                    normalize_advantage: self.normalize_advantage,
                    ent_coef: self.ent_coef,
                    vf_coef: self.vf_coef,
                    normalize_obs: self.normalize_obs,
                    normalize_reward: self.normalize_reward,
                    ..Default::default()
                },
                sequences: SequenceSettings::default(),
            },
            rms_prop_eps: self.use_rms_prop.then_some(self.rms_prop_eps),
        })
    }
}
