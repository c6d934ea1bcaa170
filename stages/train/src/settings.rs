//! The settings that algorithms share: the configuration of a stage kind holds them beside its own.

use crate::checks::check;
use crate::network::{Network, PolicyKwargs};
use crate::validation_config::ValidationConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::{ConfigProblem, Schedule};
use stages_policy::{Device, Precision};

/// The device on which a network is trained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceChoice {
    /// The fastest available device, by timing an update of these sizes on each.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// The first NVIDIA GPU.
    Cuda,
    /// Apple's GPU.
    Metal,
}

impl DeviceChoice {
    /// The devices to choose from.
    pub(crate) fn candidates(self) -> &'static [Device] {
        match self {
            Self::Auto => &Device::ALL,
            Self::Cpu => &[Device::Cpu],
            Self::Cuda => &[Device::Cuda],
            Self::Metal => &[Device::Metal],
        }
    }
}

/// The part of an earlier training that another begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Resume {
    /// The parameters of its policy and the normalisation of observations. The optimiser, the statistics of
    /// rewards and all random numbers begin anew, and steps count from 0.
    #[default]
    Fresh,
    /// Its whole train state: the optimiser's moments, the statistics of observations and rewards, the count
    /// of steps, which schedules and `total_timesteps` go on from, and in the same environment with the same
    /// seed its episodes, too. The other training needs `save_train_state: true`. Without a policy at `init`,
    /// training begins from the start.
    Continue,
}

stages_core::flat_settings! {
    /// The settings that every algorithm has.
    #[derive(Copy)]
    pub struct TrainingSettings {
        /// The number of environment steps to train for; required. Rounded up to whole rollouts.
        pub total_timesteps: u64,
        /// The number of environment steps after which training stops, with the rollout that reaches it,
        /// below `total_timesteps`. Schedules and all else are those of `total_timesteps`: a training with a
        /// larger `until`, or without, goes on from there to the bytes of one that was never stopped. A
        /// search sets it at the rungs of a trial.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub until: Option<u64>,
        /// The seed of initial weights, environments, actions and shuffles.
        pub seed: u64,
        /// The number of parallel environments.
        pub n_envs: usize = 1,
        /// The optimiser's learning rate.
        pub learning_rate: Schedule = Schedule::Constant(3e-4),
        /// Validation during training, and the choice of the policy that is handed on: the best in
        /// validation, where there is validation, else the last.
        pub validation: ValidationConfig,
        /// The state that a training takes over from the policy at `init`.
        pub resume: Resume = Resume::Fresh,
        /// If true, the artifact of the policy holds the train state as well, so that another training
        /// can go on from it with `resume: continue`. It takes three times the space of the policy, and
        /// more.
        pub save_train_state: bool,
        /// The device on which the network is trained: `auto` times an update of these sizes on each
        /// device that this program was built for and the machine has. Not part of the key: the result of
        /// another device is as valid, but has other bytes.
        pub device: DeviceChoice = DeviceChoice::Auto,
        /// Seconds between checkpoints. Does not change the result.
        pub checkpoint_interval: f64 = 20.0,
        /// Rollouts between reports of metrics; the metrics that are stored hold every rollout. Does not
        /// change the result.
        pub log_interval: u64 = 1,
    }

    /// The settings of learning from rollouts in minibatches.
    #[derive(Copy)]
    pub struct RolloutSettings {
        /// Steps of each environment in a rollout, of `n_envs` x `n_steps` samples.
        pub n_steps: usize = 128,
        /// Samples in a minibatch, at most `n_envs` x `n_steps`. For a network with a memory a multiple
        /// of the sequences' length (`n_steps`, unless there is a `sequence_length`): its minibatches are
        /// made of whole sequences, each of one environment.
        pub batch_size: usize = 128,
        /// Epochs: passes over each rollout.
        pub n_epochs: usize = 10,
        /// Bound of the gradient's Euclidean norm.
        pub max_grad_norm: f64 = 0.5,
        /// The type of numbers that an LSTM's matrix products take: `bf16` is several times as fast on
        /// CPUs with AMX. Parameters and sums stay in `f32`.
        pub precision: Precision = Precision::F32,
    }

    /// The settings of sequences, into which the rollouts of a recurrent network are cut.
    #[derive(Copy, Eq)]
    pub struct SequenceSettings {
        /// Steps of a sequence, through which gradients flow; `n_steps` must be a multiple. The state
        /// before a sequence is the rollout's. None: `n_steps`.
        pub sequence_length: Option<usize>,
        /// Steps before each sequence that are run forward without a loss, with the present parameters,
        /// from the rollout's state before them. A sequence that begins earlier in its rollout has as
        /// many as there are.
        pub burn_in: usize,
    }
}

/// The settings that cannot change the result, of any algorithm.
pub(crate) const NOT_IN_KEY: &[&str] = &["checkpoint_interval", "device", "log_interval", "memory_map_above"];

/// The checked settings of every training. An algorithm without minibatches sets those of rollouts by itself.
#[derive(Clone, Debug)]
pub struct Common {
    pub(crate) training: TrainingSettings,
    pub(crate) rollouts: RolloutSettings,
    pub(crate) network: Network,
}

/// Refuses an `until` that does not stop a training of `total_timesteps` before its end.
pub(crate) fn check_until(until: Option<u64>, total_timesteps: u64) -> Result<(), ConfigProblem> {
    ConfigProblem::new(
        "until",
        format!("must be above 0 and below total_timesteps ({total_timesteps})"),
    )
    .hint("leave `until` out to train to the end")
    .when(until.is_some_and(|until| until == 0 || until >= total_timesteps))
}

impl TrainingSettings {
    /// The number of environment steps after which training ends, with the rollout that reaches it.
    pub(crate) fn end(&self) -> u64 {
        self.until.unwrap_or(u64::MAX).min(self.total_timesteps)
    }
}

impl RolloutSettings {
    /// The settings of rollouts that are learned from once, by an algorithm that sets them itself.
    pub(crate) fn once(n_steps: usize, batch_size: usize, max_grad_norm: f64) -> Self {
        Self {
            n_steps,
            batch_size,
            n_epochs: 1,
            max_grad_norm,
            ..Self::default()
        }
    }
}

impl Common {
    /// Checks the settings of an algorithm that learns in minibatches.
    pub(crate) fn checked(
        training: TrainingSettings,
        rollouts: RolloutSettings,
        policy: &impl PolicyKwargs,
    ) -> Result<Self, ConfigProblem> {
        let common = Self {
            training,
            rollouts,
            network: policy.network()?,
        };
        common.check()?;
        Ok(common)
    }

    /// The common settings of a training that evaluates a population: a rollout is as long as no generation
    /// is, of a member and all others.
    pub(crate) fn population(
        training: TrainingSettings,
        members: usize,
        episode_length: Option<u64>,
        batch_size: usize,
        network: Network,
    ) -> Self {
        let n_steps = (members + 1).saturating_mul(episode_length.unwrap_or(1 << 24) as usize);
        Self {
            training,
            rollouts: RolloutSettings::once(n_steps, batch_size, f64::INFINITY),
            network,
        }
    }

    /// The number of samples in a rollout.
    pub(crate) fn rollout(&self) -> u64 {
        self.training.n_envs as u64 * self.rollouts.n_steps as u64
    }

    /// The step at which training ends: whole rollouts.
    pub(crate) fn last_step(&self) -> u64 {
        self.training.end().next_multiple_of(self.rollout())
    }

    /// The learning rate after `step` environment steps.
    pub(crate) fn learning_rate_at(&self, step: u64) -> f64 {
        self.training
            .learning_rate
            .at(step as f64 / self.training.total_timesteps as f64)
    }

    /// The numerics class of a training on a device.
    pub(crate) fn numerics_class(&self, device: Device) -> String {
        device.class(self.network.lstm_layers())
    }

    /// Refuses minibatches of broken sequences, for a network with a memory: `length` steps each, as the
    /// setting `of` says.
    pub(crate) fn check_sequences(&self, of: &str, length: usize) -> Result<(), ConfigProblem> {
        if !self.network.is_recurrent() || self.rollouts.batch_size.is_multiple_of(length) {
            return Ok(());
        }
        let nearest = self.rollouts.batch_size.next_multiple_of(length);
        Err(ConfigProblem::new(
            "batch_size",
            format!("{} is not a multiple of {of} ({length})", self.rollouts.batch_size),
        )
        .hint(format!(
            "minibatches are made of whole sequences of {of}; the next multiple is {nearest}"
        )))
    }

    /// Checks the settings.
    pub(crate) fn check(&self) -> Result<(), ConfigProblem> {
        ConfigProblem::new("total_timesteps", "`total_timesteps` is required")
            .hint("write `total_timesteps: 300000`, say, in environment steps")
            .when(self.training.total_timesteps == 0)?;
        check_until(self.training.until, self.training.total_timesteps)?;
        check!(self.training; count: n_envs;);
        check!(self.rollouts; count: n_steps, batch_size, n_epochs;);
        check!(self.training; count: log_interval;);
        ConfigProblem::new(
            "precision",
            "bf16 is only supported for the products of one layer of LSTM",
        )
        .hint("leave `precision` out, or train with `train/recurrent_ppo` and `n_lstm_layers: 1`")
        .when(self.rollouts.precision == Precision::Bf16 && self.network.lstm_layers() != 1)?;
        ConfigProblem::new(
            "n_steps",
            "a rollout of n_envs x n_steps samples does not fit in memory",
        )
        .hint("a rollout usually has a few thousand samples")
        .when(self.rollout() > 1 << 28)?;
        self.training.validation.check()?;
        check!(self.training; schedule: learning_rate;);
        check!(self.rollouts; positive: max_grad_norm;);
        check!(self.training; positive: checkpoint_interval;);
        Ok(())
    }
}
