//! The settings of `train/sac`, named and set as stable-baselines3 2.9 does.

use crate::checks::check;
use crate::network::{Network, NetworkHead, check_sizes, problem};
use crate::replay::settings::{OffPolicySettings, ReplaySettings};
use crate::settings::TrainingSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::ConfigProblem;
use stages_policy::Activation;

/// The weight of the entropy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum EntCoef {
    /// A constant.
    Fixed(f64),
    /// `auto`: learned, from 1 on; `auto_0.1`: from 0.1 on.
    Learned(String),
}

impl Default for EntCoef {
    fn default() -> Self {
        Self::Learned("auto".to_owned())
    }
}

impl EntCoef {
    /// The first value, and true if it is learned.
    pub(crate) fn checked(&self) -> Result<(f64, bool), ConfigProblem> {
        let parsed = self.parse().filter(|(value, _)| *value > 0.0 && value.is_finite());
        parsed.ok_or_else(|| {
            ConfigProblem::new("ent_coef", "must be greater than 0, or `auto`")
                .hint("write `auto`, `auto_0.1` to begin with 0.1, or a number")
        })
    }

    fn parse(&self) -> Option<(f64, bool)> {
        match self {
            Self::Fixed(value) => Some((*value, false)),
            Self::Learned(text) => match text.strip_prefix("auto")? {
                "" => Some((1.0, true)),
                rest => Some((rest.strip_prefix('_')?.parse().ok()?, true)),
            },
        }
    }
}

/// The sizes of hidden layers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActorCriticArch {
    /// The actor's, first to last.
    pub pi: Vec<usize>,
    /// Each critic's, first to last.
    pub qf: Vec<usize>,
}

impl ActorCriticArch {
    pub(crate) fn check(&self) -> Result<(), ConfigProblem> {
        problem("net_arch", "a layer needs a size of at least 1")
            .when(self.pi.iter().chain(&self.qf).any(|&size| size == 0))?;
        Ok(())
    }

    /// The actor's network, beside `n_critics` critics.
    pub(crate) fn network(
        &self,
        n_critics: usize,
        activation: Activation,
        head: NetworkHead,
    ) -> Result<Network, ConfigProblem> {
        self.check()?;
        check_sizes(&[("n_critics", n_critics)])?;
        Ok(Network::perceptron(&self.pi, activation, head))
    }
}

stages_core::settings! {
    /// The networks of `train/sac`.
    #[derive(Eq)]
    pub struct SacPolicy {
        /// The sizes of hidden layers.
        pub net_arch: ActorCriticArch = ActorCriticArch {
            pi: vec![256, 256],
            qf: vec![256, 256],
        },
        /// The activation function of hidden layers.
        pub activation_fn: Activation = Activation::Relu,
        /// The number of critics, of whose values the least counts.
        pub n_critics: usize = 2,
    }
}

stages_core::flat_settings! {
    /// Configuration of `train/sac`.
    pub struct SacConfig {
        /// The weight of the entropy: a number, or `auto` to learn it from 1 on (`auto_0.1`: from 0.1 on)
        /// such that the policy's entropy is `target_entropy`.
        pub ent_coef: EntCoef = EntCoef::default(),
        /// That entropy, in nats; by default minus the number of components of an action.
        pub target_entropy: Option<f64> = None,
        /// Gradient steps between updates of the target networks.
        pub target_update_interval: u64 = 1,
        /// The replay buffer.
        #[serde(flatten)]
        pub replay: ReplaySettings,
        /// The settings that every algorithm has.
        #[serde(flatten)]
        pub training: TrainingSettings,
        /// The network.
        pub policy_kwargs: SacPolicy,
    }
}

/// SAC. In the train state, the logarithm of the entropy's weight follows the critics' parameters.
#[derive(Clone, Debug)]
pub struct Sac {
    /// The sizes of each critic's hidden layers, and the number of critics.
    pub(crate) qf: Vec<usize>,
    pub(crate) n_critics: usize,
    /// The weight of the entropy at the start, and whether it is learned.
    pub(crate) ent_coef: (f64, bool),
    pub(crate) target_entropy: Option<f64>,
    pub(crate) target_update_interval: u64,
}

/// The checked settings.
pub type SacSettings = OffPolicySettings<Sac>;

impl SacConfig {
    /// Checks the settings.
    pub(crate) fn settings(&self) -> Result<SacSettings, ConfigProblem> {
        let policy = &self.policy_kwargs;
        let head = NetworkHead::SquashedGaussian;
        let network = policy.net_arch.network(policy.n_critics, policy.activation_fn, head)?;
        let common = self.replay.common(self.training, network, f64::INFINITY)?;
        let ent_coef = self.ent_coef.checked()?;
        check!(self; count: target_update_interval;);
        ConfigProblem::new("target_entropy", "must be finite")
            .when(self.target_entropy.is_some_and(|value| !value.is_finite()))?;
        Ok(OffPolicySettings {
            common,
            replay: self.replay,
            own: Sac {
                qf: policy.net_arch.qf.clone(),
                n_critics: policy.n_critics,
                ent_coef,
                target_entropy: self.target_entropy,
                target_update_interval: self.target_update_interval,
            },
        })
    }
}
