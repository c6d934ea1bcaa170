//! The settings of algorithms that learn from a replay buffer, named as stable-baselines3 2.9 does.

use crate::checks::check;
use crate::network::Network;
use crate::settings::{Common, RolloutSettings, TrainingSettings};
use stages_core::ConfigProblem;

stages_core::flat_settings! {
    /// The settings of a replay buffer.
    #[derive(Copy)]
    pub struct ReplaySettings {
        /// The number of transitions that the replay buffer holds, of all environments together.
        pub buffer_size: usize = 1_000_000,
        /// Environment steps before learning begins, taken by uniformly random actions.
        pub learning_starts: u64 = 100,
        /// Transitions in a batch.
        pub batch_size: usize = 256,
        /// The share of the parameters that target networks take over in an update (Polyak averaging).
        pub tau: f64 = 0.005,
        /// Discount per step.
        pub gamma: f64 = 0.99,
        /// Steps of each environment between gradient steps.
        pub train_freq: usize = 1,
        /// Gradient steps after them; -1 for as many as transitions were added.
        pub gradient_steps: i64 = 1,
        /// Steps whose rewards a target adds up before the value of the state after them.
        pub n_steps: usize = 1,
        /// Bytes of the replay buffer above which it is mapped from a file instead of held in memory.
        /// Does not change the result.
        pub memory_map_above: u64 = 2 << 30,
    }
}

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
    /// The checked common settings of a training that learns from this buffer.
    pub(crate) fn common(
        &self,
        training: TrainingSettings,
        network: Network,
        max_grad_norm: f64,
    ) -> Result<Common, ConfigProblem> {
        self.check(training.n_envs)?;
        let common = Common {
            training,
            rollouts: RolloutSettings::once(self.round(), self.batch_size, max_grad_norm),
            network,
        };
        common.check()?;
        let total = common.last_step();
        ConfigProblem::new(
            "learning_starts",
            format!(
                "{} is not before the end of the training ({total} steps): nothing would be learned",
                self.learning_starts
            ),
        )
        .hint("raise `total_timesteps` and `until`, or lower `learning_starts`")
        .when(self.learning_starts >= total)?;
        Ok(common)
    }

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
