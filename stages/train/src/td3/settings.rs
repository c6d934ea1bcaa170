//! The settings of `train/td3`, named and set as stable-baselines3 2.9 does.

use crate::checks::check;
use crate::network::NetworkHead;
use crate::replay::settings::{OffPolicySettings, ReplaySettings};
use crate::sac::settings::ActorCriticArch;
use crate::settings::TrainingSettings;
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

stages_core::flat_settings! {
    /// Configuration of `train/td3`.
    pub struct Td3Config {
        /// The standard deviation of the normal noise that is added to actions in training, where the bounds
        /// of actions are -1 and 1. stable-baselines3 adds none unless it is given, and then hardly explores.
        pub action_noise: f64 = 0.1,
        /// Gradient steps of the critics for each of the actor and of the target networks.
        pub policy_delay: u64 = 2,
        /// The standard deviation of the normal noise that is added to the target actor's actions.
        pub target_policy_noise: f64 = 0.2,
        /// The bound of that noise.
        pub target_noise_clip: f64 = 0.5,
        /// The replay buffer.
        #[serde(flatten)]
        pub replay: ReplaySettings,
        /// The settings that every algorithm has.
        #[serde(flatten)]
        pub training: TrainingSettings = TrainingSettings {
            learning_rate: Schedule::Constant(1e-3),
            ..Default::default()
        },
        /// The network.
        pub policy_kwargs: Td3Policy,
    }
}

/// TD3. In the train state's extra parameters, those of the target actor follow those of the target critics.
#[derive(Clone, Debug)]
pub struct Td3 {
    /// The sizes of each critic's hidden layers, and the number of critics.
    pub(crate) qf: Vec<usize>,
    pub(crate) n_critics: usize,
    pub(crate) action_noise: f64,
    pub(crate) policy_delay: u64,
    pub(crate) target_policy_noise: f64,
    pub(crate) target_noise_clip: f64,
}

/// The checked settings.
pub type Td3Settings = OffPolicySettings<Td3>;

impl Td3Config {
    /// Checks the settings.
    pub(crate) fn settings(&self) -> Result<Td3Settings, ConfigProblem> {
        let policy = &self.policy_kwargs;
        let head = NetworkHead::Deterministic;
        let network = policy.net_arch.network(policy.n_critics, policy.activation_fn, head)?;
        let common = self.replay.common(self.training, network, f64::INFINITY)?;
        check!(self; count: policy_delay; weight: action_noise, target_policy_noise, target_noise_clip;);
        Ok(OffPolicySettings {
            common,
            replay: self.replay,
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
