//! The settings of `train/dqn`, named and set as stable-baselines3 2.9 does; those of prioritised replay as
//! in stable-baselines 2.

use crate::checks::check;
use crate::network::{Network, NetworkHead, problem};
use crate::replay::settings::{OffPolicySettings, ReplaySettings};
use crate::settings::{Common, TrainingSettings};
use stages_core::{ConfigProblem, Schedule};
use stages_policy::Activation;

stages_core::settings! {
    /// The network of `train/dqn`.
    #[derive(Eq)]
    pub struct DqnPolicy {
        /// The sizes of hidden layers, first to last.
        pub net_arch: Vec<usize> = vec![64, 64],
        /// The activation function of hidden layers.
        pub activation_fn: Activation = Activation::Relu,
        /// If true, the outputs are the value of the state and the advantage of each choice (Wang and others,
        /// 2016).
        pub dueling: bool = false,
    }
}

stages_core::flat_settings! {
    /// Configuration of `train/dqn`.
    pub struct DqnConfig {
        /// Environment steps between updates of the target network.
        pub target_update_interval: u64 = 10_000,
        /// The share of the training over which the share of random actions falls.
        pub exploration_fraction: f64 = 0.1,
        /// The share of random actions at the start.
        pub exploration_initial_eps: f64 = 1.0,
        /// The share of random actions from then on, and of those that the trained policy draws where it is
        /// not asked for its best.
        pub exploration_final_eps: f64 = 0.05,
        /// Bound of the gradient's Euclidean norm.
        pub max_grad_norm: f64 = 10.0,
        /// If true, the network chooses the action whose value the target network gives (van Hasselt and
        /// others, 2016).
        pub double_q: bool = false,
        /// If true, transitions are drawn by the size of their last errors (Schaul and others, 2016), and
        /// weighted against that.
        pub prioritized_replay: bool = false,
        /// The power of the errors that priorities are.
        pub prioritized_replay_alpha: f64 = 0.6,
        /// The power of the weights at the start, which rises to 1 at the end of training.
        pub prioritized_replay_beta0: f64 = 0.4,
        /// The replay buffer.
        #[serde(flatten)]
        pub replay: ReplaySettings = ReplaySettings {
            batch_size: 32,
            tau: 1.0,
            train_freq: 4,
            ..Default::default()
        },
        /// The settings that every algorithm has.
        #[serde(flatten)]
        pub training: TrainingSettings = TrainingSettings {
            learning_rate: Schedule::Constant(1e-4),
            ..Default::default()
        },
        /// The network.
        pub policy_kwargs: DqnPolicy,
    }
}

/// DQN. The train state's extra parameters are those of the target network, and after them, where replay is
/// prioritised, the greatest priority so far and that of each row of the buffer.
#[derive(Clone, Debug)]
pub struct Dqn {
    pub(crate) dueling: bool,
    pub(crate) target_update_interval: u64,
    /// The share of random actions at the start and at the end, and the share of the training in between.
    pub(crate) exploration: (f64, f64),
    pub(crate) exploration_fraction: f64,
    pub(crate) double_q: bool,
    /// Alpha and the first beta of prioritised replay.
    pub(crate) priorities: Option<(f64, f64)>,
}

/// The checked settings.
pub type DqnSettings = OffPolicySettings<Dqn>;

impl Dqn {
    /// The share of random actions after `step` environment steps.
    pub(crate) fn epsilon(&self, step: u64, common: &Common) -> f64 {
        let (first, last) = self.exploration;
        let done = step as f64 / common.training.total_timesteps as f64;
        if done >= self.exploration_fraction {
            return last;
        }
        first + (last - first) * done / self.exploration_fraction
    }
}

impl DqnConfig {
    /// Checks the settings.
    pub(crate) fn settings(&self) -> Result<DqnSettings, ConfigProblem> {
        let policy = &self.policy_kwargs;
        problem("net_arch", "a layer needs a size of at least 1").when(policy.net_arch.contains(&0))?;
        let head = NetworkHead::QValues {
            dueling: policy.dueling,
            epsilon: self.exploration_final_eps as f32,
        };
        let network = Network::perceptron(&policy.net_arch, policy.activation_fn, head);
        let common = self.replay.common(self.training, network, self.max_grad_norm)?;
        check!(
            self; count: target_update_interval;
            share: exploration_fraction, exploration_initial_eps, exploration_final_eps,
                prioritized_replay_beta0;
            weight: prioritized_replay_alpha; positive: max_grad_norm;
        );
        let powers = (self.prioritized_replay_alpha, self.prioritized_replay_beta0);
        Ok(OffPolicySettings {
            common,
            replay: self.replay,
            own: Dqn {
                dueling: policy.dueling,
                target_update_interval: self.target_update_interval,
                exploration: (self.exploration_initial_eps, self.exploration_final_eps),
                exploration_fraction: self.exploration_fraction,
                double_q: self.double_q,
                priorities: self.prioritized_replay.then_some(powers),
            },
        })
    }
}
