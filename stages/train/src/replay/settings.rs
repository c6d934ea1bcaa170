//! The settings of algorithms that learn from a replay buffer, named as stable-baselines3 2.9 does.

use crate::checks::check;
use crate::settings::Common;
use stages_core::ConfigProblem;

/// Passes the settings of a replay buffer to a macro, after its other arguments. `Self` is the configuration.
macro_rules! with_replay_settings {
    ($macro:ident! $($arguments:tt)*) => {
        $macro! { $($arguments)* {
            /// The number of transitions that the replay buffer holds, of all environments together.
            buffer_size: usize = 1_000_000,
            /// Environment steps before learning begins, taken by uniformly random actions.
            learning_starts: u64 = Self::LEARNING_STARTS,
            /// Transitions in a batch.
            batch_size: usize = Self::BATCH_SIZE,
            /// The share of the parameters that target networks take over in an update (Polyak averaging).
            tau: f64 = Self::TAU,
            /// Discount per step.
            gamma: f64 = 0.99,
            /// Steps of each environment between gradient steps.
            train_freq: usize = Self::TRAIN_FREQ,
            /// Gradient steps after them; -1 for as many as transitions were added.
            gradient_steps: i64 = 1,
            /// Steps whose rewards a target adds up before the value of the state after them.
            n_steps: usize = 1,
            /// Bytes of the replay buffer above which it is mapped from a file instead of held in memory.
            /// Does not change the result.
            memory_map_above: u64 = 2 << 30,
        } }
    };
}
pub(crate) use with_replay_settings;

/// The settings that cannot change the result.
pub(crate) const NOT_IN_KEY: &[&str] = &["checkpoint_interval", "device", "log_interval", "memory_map_above"];

macro_rules! replay_settings {
    ({ $($(#[$meta:meta])* $field:ident: $ty:ty = $default:expr,)* }) => {
        /// The settings of a replay buffer.
        #[derive(Clone, Debug)]
        pub(crate) struct ReplaySettings {
            $($(#[$meta])* pub $field: $ty,)*
        }
    };
}
with_replay_settings!(replay_settings!);

/// The settings of the replay buffer of a configuration.
macro_rules! replay_of {
    ($config:ident; { $($(#[$meta:meta])* $field:ident: $ty:ty = $default:expr,)* }) => {
        $crate::replay::settings::ReplaySettings {
            $($field: $config.$field,)*
        }
    };
}
pub(crate) use replay_of;

/// The checked common settings of a configuration of an algorithm that learns from a replay buffer, and those
/// of the buffer.
macro_rules! off_policy_of {
    ($config:ident, $network:expr, $max_grad_norm:expr) => {{
        let replay = with_replay_settings!(replay_of! $config;);
        replay.check($config.n_envs)?;
        let common = with_shared_settings!(common_of! $config, $network, replay.round(), replay.batch_size,
            $max_grad_norm;);
        common.check()?;
        (common, replay)
    }};
}
pub(crate) use off_policy_of;

/// The checked settings of an algorithm that learns from a replay buffer.
#[derive(Clone, Debug)]
pub struct OffPolicySettings<A> {
    pub(crate) common: Common,
    pub(crate) replay: ReplaySettings,
    /// The algorithm, with the settings that it alone has.
    pub(crate) own: A,
}

/// Metrics are of this number of steps of each environment, rounded up to whole
/// [`ReplaySettings::train_freq`].
const ROUND: usize = 100;

impl ReplaySettings {
    /// Steps of each environment in a round, the rollout of these algorithms.
    pub(crate) fn round(&self) -> usize {
        ROUND.next_multiple_of(self.train_freq.max(1))
    }

    /// Rows of the buffer, a multiple of the number of environments.
    pub(crate) fn capacity(&self, n_envs: usize) -> usize {
        (self.buffer_size / n_envs).max(1) * n_envs
    }

    /// Gradient steps after each `train_freq` steps of `n_envs` environments.
    pub(crate) fn gradient_steps(&self, n_envs: usize) -> usize {
        usize::try_from(self.gradient_steps).unwrap_or(self.train_freq * n_envs)
    }

    /// Checks the settings.
    pub(crate) fn check(&self, n_envs: usize) -> Result<(), ConfigProblem> {
        check!(self; count: batch_size, train_freq, n_steps;);
        ConfigProblem::new("gradient_steps", "must be 0 or more, or -1").when(self.gradient_steps < -1)?;
        ConfigProblem::new(
            "buffer_size",
            "must be at least batch_size and n_envs, and at most 2^31",
        )
        .when(self.buffer_size < n_envs.max(self.batch_size) || self.buffer_size > 1 << 31)?;
        ConfigProblem::new("n_steps", "the buffer holds fewer steps of each environment")
            .when(self.buffer_size / n_envs.max(1) <= self.n_steps)?;
        check!(self; share: gamma; positive: tau;);
        ConfigProblem::new("tau", "must be at most 1").when(self.tau > 1.0)?;
        Ok(())
    }
}
