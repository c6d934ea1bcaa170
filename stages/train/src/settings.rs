//! The settings that every algorithm has, and how the configuration of a stage kind is made of them and the
//! algorithm's own: each is written once, with its default and its documentation.

use crate::checks::check;
use crate::network::Network;
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

/// Passes the settings that every algorithm has to a macro, after its other arguments. `Self` is the
/// configuration.
macro_rules! with_shared_settings {
    ($macro:ident! $($arguments:tt)*) => {
        $macro! { $($arguments)* {
            /// The number of environment steps to train for; required. Rounded up to whole rollouts.
            total_timesteps: u64 = 0,
            /// The seed of initial weights, environments, actions and shuffles.
            seed: u64 = 0,
            /// The number of parallel environments.
            n_envs: usize = 1,
            /// The optimiser's learning rate.
            learning_rate: Schedule = Schedule::Constant(Self::LEARNING_RATE),
            /// Validation during training, and the choice of the policy that is handed on: the best in
            /// validation, where there is validation, else the last.
            validation: ValidationConfig = ValidationConfig::default(),
            /// The state that a training takes over from the policy at `init`.
            resume: Resume = Resume::Fresh,
            /// If true, the artifact of the policy holds the train state as well, so that another training
            /// can go on from it with `resume: continue`. It takes three times the space of the policy, and
            /// more.
            save_train_state: bool = false,
            /// The device on which the network is trained: `auto` times an update of these sizes on each
            /// device that this program was built for and the machine has. Not part of the key: the result of
            /// another device is as valid, but has other bytes.
            device: DeviceChoice = DeviceChoice::Auto,
            /// Seconds between checkpoints. Does not change the result.
            checkpoint_interval: f64 = 20.0,
            /// Rollouts between reports of metrics; the metrics that are stored hold every rollout. Does not
            /// change the result.
            log_interval: u64 = 1,
        } }
    };
}
pub(crate) use with_shared_settings;

/// Passes the settings of learning from rollouts in minibatches to a macro, after its other arguments.
macro_rules! with_minibatch_settings {
    ($macro:ident! $($arguments:tt)*) => {
        $macro! { $($arguments)* {
            /// Steps of each environment in a rollout, of `n_envs` x `n_steps` samples.
            n_steps: usize = Self::N_STEPS,
            /// Samples in a minibatch, at most `n_envs` x `n_steps`. For a network with a memory a multiple
            /// of the sequences' length (`n_steps`, unless there is a `sequence_length`): its minibatches are
            /// made of whole sequences, each of one environment.
            batch_size: usize = Self::BATCH_SIZE,
            /// Epochs: passes over each rollout.
            n_epochs: usize = 10,
            /// Bound of the gradient's Euclidean norm.
            max_grad_norm: f64 = 0.5,
            /// The type of numbers that an LSTM's matrix products take: `bf16` is several times as fast on
            /// CPUs with AMX. Parameters and sums stay in `f32`.
            precision: Precision = Precision::F32,
        } }
    };
}
pub(crate) use with_minibatch_settings;

/// Passes both to a macro, after its other arguments.
macro_rules! with_common_settings {
    ($($arguments:tt)*) => {
        $crate::settings::with_minibatch_settings! { with_shared_settings! $($arguments)* }
    };
}
pub(crate) use with_common_settings;

/// The settings that cannot change the result.
pub(crate) const NOT_IN_KEY: &[&str] = &["checkpoint_interval", "device", "log_interval"];

macro_rules! common {
    ({ $($(#[$meta:meta])* $field:ident: $ty:ty = $default:expr,)* } {
        $($(#[$shared_meta:meta])* $shared:ident: $shared_ty:ty = $shared_default:expr,)* }) => {
        /// The settings of every training: those that every algorithm has, and those of rollouts and
        /// minibatches, which an algorithm without sets by itself.
        #[derive(Clone, Debug)]
        pub struct Common {
            $($(#[$meta])* pub $field: $ty,)*
            $($(#[$shared_meta])* pub $shared: $shared_ty,)*
            /// The network.
            pub network: Network,
        }
    };
}
with_minibatch_settings!(with_shared_settings! common!);

/// Declares the checked settings of an algorithm: the common ones and its own.
macro_rules! settings {
    ($(#[$settings_meta:meta])* $settings:ident { $($(#[$meta:meta])* $field:ident: $ty:ty =
        $default:expr,)* }) => {
        $(#[$settings_meta])*
        #[derive(Clone, Debug)]
        pub struct $settings {
            /// Those that every algorithm has.
            pub(crate) common: $crate::settings::Common,
            $($(#[$meta])* pub(crate) $field: $ty,)*
        }
    };
}
pub(crate) use settings;

/// Declares the configuration of a stage kind: the network's settings, the algorithm's own and the common
/// ones, in one flat map. In parentheses are the algorithm's settings that the kind does not have, and their
/// values.
macro_rules! config {
    (
        $doc:literal $config:ident($policy:ty, n_steps: $n_steps:literal, batch_size: $batch_size:literal)
            => $settings:ident $(($($absent:ident: $value:expr),*))?
        { $($(#[$own_meta:meta])* $own:ident: $own_ty:ty = $own_default:expr,)* }
        $({ $($(#[$meta:meta])* $field:ident: $ty:ty = $default:expr,)* })*
    ) => {
        $crate::settings::config_struct! {
            #[doc = $doc]
            $config($policy)
            { $($(#[$own_meta])* $own: $own_ty = $own_default,)* }
            $({ $($(#[$meta])* $field: $ty = $default,)* })*
        }

        impl $config {
            const N_STEPS: usize = $n_steps;
            const BATCH_SIZE: usize = $batch_size;
            const LEARNING_RATE: f64 = 3e-4;

            /// Checks the settings.
            ///
            /// # Errors
            /// The first mistake found.
            pub fn settings(&self) -> Result<$settings, ConfigProblem> {
                let settings = $settings {
                    common: $crate::settings::Common {
                        $($($field: self.$field,)*)*
                        network: $crate::network::PolicyKwargs::network(&self.policy_kwargs)?,
                    },
                    $($own: self.$own,)*
                    $($($absent: $value,)*)?
                };
                settings.common.check()?;
                settings.check()?;
                Ok(settings)
            }
        }
    };
}
pub(crate) use config;

/// Declares the configuration of a stage kind alone, of groups of settings in one flat map.
macro_rules! config_struct {
    ($(#[$about:meta])* $config:ident($policy:ty) $({ $($(#[$meta:meta])* $field:ident: $ty:ty =
        $default:expr,)* })*) => {
        stages_core::settings! {
            $(#[$about])*
            pub struct $config {
                $($($(#[$meta])* pub $field: $ty = $default,)*)*
                /// The network.
                pub policy_kwargs: $policy,
            }
        }
    };
}
pub(crate) use config_struct;

/// The common settings of a configuration that has the shared ones, and has others for rollouts and
/// minibatches.
macro_rules! common_of {
    ($config:ident, $network:expr, $n_steps:expr, $batch_size:expr, $max_grad_norm:expr;
        { $($(#[$meta:meta])* $field:ident: $ty:ty = $default:expr,)* }) => {
        $crate::settings::Common {
            $($field: $config.$field,)*
            n_steps: $n_steps,
            batch_size: $batch_size,
            n_epochs: 1,
            max_grad_norm: $max_grad_norm,
            precision: stages_policy::Precision::F32,
            network: $network,
        }
    };
}
pub(crate) use common_of;

impl Common {
    /// The number of samples in a rollout.
    pub(crate) fn rollout(&self) -> u64 {
        self.n_envs as u64 * self.n_steps as u64
    }

    /// The step at which training ends: whole rollouts.
    pub(crate) fn last_step(&self) -> u64 {
        self.total_timesteps.next_multiple_of(self.rollout())
    }

    /// The learning rate after `step` environment steps.
    pub(crate) fn learning_rate_at(&self, step: u64) -> f64 {
        self.learning_rate.at(step as f64 / self.total_timesteps as f64)
    }

    /// The numerics class of a training on a device.
    pub(crate) fn numerics_class(&self, device: Device) -> String {
        device.class(self.network.lstm_layers())
    }

    /// Refuses minibatches of broken sequences, for a network with a memory: `length` steps each, as the
    /// setting `of` says.
    pub(crate) fn check_sequences(&self, of: &str, length: usize) -> Result<(), ConfigProblem> {
        if !self.network.is_recurrent() || self.batch_size.is_multiple_of(length) {
            return Ok(());
        }
        let nearest = self.batch_size.next_multiple_of(length);
        Err(ConfigProblem::new(
            "batch_size",
            format!("{} is not a multiple of {of} ({length})", self.batch_size),
        )
        .hint(format!(
            "minibatches are made of whole sequences of {of}; the next multiple is {nearest}"
        )))
    }

    /// Checks the settings.
    pub(crate) fn check(&self) -> Result<(), ConfigProblem> {
        ConfigProblem::new("total_timesteps", "`total_timesteps` is required")
            .hint("write `total_timesteps: 300_000`, say, in environment steps")
            .when(self.total_timesteps == 0)?;
        check!(self; count: n_envs, n_steps, batch_size, n_epochs, log_interval;);
        ConfigProblem::new(
            "precision",
            "bf16 is only supported for the products of one layer of LSTM",
        )
        .hint("leave `precision` out, or train with `train/recurrent_ppo` and `n_lstm_layers: 1`")
        .when(self.precision == Precision::Bf16 && self.network.lstm_layers() != 1)?;
        ConfigProblem::new(
            "n_steps",
            "a rollout of n_envs x n_steps samples does not fit in memory",
        )
        .hint("a rollout usually has a few thousand samples")
        .when(self.rollout() > 1 << 28)?;
        self.validation.check()?;
        check!(self; schedule: learning_rate; positive: max_grad_norm, checkpoint_interval;);
        Ok(())
    }
}
