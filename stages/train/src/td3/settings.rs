//! The settings of `train/td3`, named and set as stable-baselines3 2.9 does.

use super::algorithm::Td3;
use crate::checks::check;
use crate::network::NetworkHead;
use crate::replay::settings::{OffPolicySettings, off_policy_of, replay_of, with_replay_settings};
use crate::sac::settings::ActorCriticArch;
use crate::settings::{DeviceChoice, Resume, common_of, config_struct, with_shared_settings};
use crate::validation_config::ValidationConfig;
use stages_core::{ConfigProblem, Schedule};
use stages_policy::Activation;

stages_core::settings! {
    /// The networks of `train/td3`.
    #[derive(Eq)]
    pub struct Td3Policy {
        /// The sizes of hidden layers.
        pub net_arch: ActorCriticArch = ActorCriticArch {
            pi: vec![400, 300],
            qf: vec![400, 300],
        },
        /// The activation function of hidden layers.
        pub activation_fn: Activation = Activation::Relu,
        /// The number of critics, of whose values the least counts. The actor follows the first.
        pub n_critics: usize = 2,
    }
}

with_replay_settings!(with_shared_settings! config_struct!
    /// Configuration of `train/td3`.
    Td3Config(Td3Policy)
    {
        /// The standard deviation of the normal noise that is added to actions in training, where the bounds
        /// of actions are -1 and 1. stable-baselines3 adds none unless it is given, and then hardly explores.
        action_noise: f64 = 0.1,
        /// Gradient steps of the critics for each of the actor and of the target networks.
        policy_delay: u64 = 2,
        /// The standard deviation of the normal noise that is added to the target actor's actions.
        target_policy_noise: f64 = 0.2,
        /// The bound of that noise.
        target_noise_clip: f64 = 0.5,
    }
);

/// The checked settings.
pub type Td3Settings = OffPolicySettings<Td3>;

impl Td3Config {
    const LEARNING_STARTS: u64 = 100;
    const BATCH_SIZE: usize = 256;
    const TAU: f64 = 0.005;
    const TRAIN_FREQ: usize = 1;
    const LEARNING_RATE: f64 = 1e-3;

    /// Checks the settings.
    ///
    /// # Errors
    /// The first mistake found.
    pub fn settings(&self) -> Result<Td3Settings, ConfigProblem> {
        let policy = &self.policy_kwargs;
        let head = NetworkHead::Deterministic;
        let network = policy.net_arch.network(policy.n_critics, policy.activation_fn, head)?;
        let (common, replay) = off_policy_of!(self, network, f64::INFINITY);
        check!(self; count: policy_delay; weight: action_noise, target_policy_noise, target_noise_clip;);
        Ok(OffPolicySettings {
            common,
            replay,
            own: Td3 {
                qf: policy.net_arch.qf.clone(),
                n_critics: policy.n_critics,
                action_noise: self.action_noise,
                policy_delay: self.policy_delay,
                target_policy_noise: self.target_policy_noise,
                target_noise_clip: self.target_noise_clip,
            },
        })
    }
}
