//! The settings of `train/a2c`, named and set as stable-baselines3 2.9 does.

use crate::checks::check;
use crate::network::{MlpPolicy, PolicyKwargs};
use crate::ppo::settings::PpoSettings;
use crate::settings::{DeviceChoice, Resume, common_of, config_struct, with_shared_settings};
use crate::validation_config::ValidationConfig;
use stages_core::{ConfigProblem, Schedule};

with_shared_settings!(config_struct!
    /// Configuration of `train/a2c`.
    A2cConfig(MlpPolicy)
    {
        /// Steps of each environment in a rollout, of `n_envs` x `n_steps` samples.
        n_steps: usize = 5,
        /// Discount per step.
        gamma: f64 = 0.99,
        /// The lambda of generalised advantage estimation.
        gae_lambda: f64 = 1.0,
        /// Weight of the entropy bonus.
        ent_coef: f64 = 0.0,
        /// Weight of the value loss.
        vf_coef: f64 = 0.5,
        /// Bound of the gradient's Euclidean norm.
        max_grad_norm: f64 = 0.5,
        /// If true, the optimiser is RMSprop, else Adam.
        use_rms_prop: bool = true,
        /// RMSprop's epsilon.
        rms_prop_eps: f64 = 1e-5,
        /// If true, advantages are normalised within each rollout.
        normalize_advantage: bool = false,
        /// If true, observations are normalised by running mean and variance (to within 10), frozen in the
        /// policy.
        normalize_obs: bool = false,
        /// If true, rewards are divided by the running standard deviation of their return discounted by
        /// `gamma` (to within 10).
        normalize_reward: bool = false,
    }
);

/// The checked settings: those of the rollout, which PPO shares, and of the optimiser.
#[derive(Clone, Debug)]
pub struct A2cSettings {
    pub(crate) rollout: PpoSettings,
    /// RMSprop's epsilon; `None` for Adam.
    pub(crate) rms_prop_eps: Option<f64>,
}

impl A2cConfig {
    const LEARNING_RATE: f64 = 7e-4;

    /// Checks the settings.
    ///
    /// # Errors
    /// The first mistake found.
    pub fn settings(&self) -> Result<A2cSettings, ConfigProblem> {
        let network = self.policy_kwargs.network()?;
        let batch_size = self.n_envs.saturating_mul(self.n_steps);
        let common =
            with_shared_settings!(common_of! self, network, self.n_steps, batch_size, self.max_grad_norm;);
        common.check()?;
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
                gamma: self.gamma,
                gae_lambda: self.gae_lambda,
                clip_range: Schedule::Constant(f64::INFINITY),
                clip_range_vf: None,
                normalize_advantage: self.normalize_advantage,
                ent_coef: self.ent_coef,
                vf_coef: self.vf_coef,
                target_kl: None,
                sequence_length: None,
                burn_in: 0,
                normalize_obs: self.normalize_obs,
                normalize_reward: self.normalize_reward,
            },
            rms_prop_eps: self.use_rms_prop.then_some(self.rms_prop_eps),
        })
    }
}
