//! The settings of `train/ppo`, `train/recurrent_ppo` and `train/transformer_ppo`, named and set as
//! stable-baselines3 2.9 and sb3-contrib 2.9 do.

use crate::checks::check;
use crate::network::{MlpLstmPolicy, MlpPolicy, TransformerPolicy};
use crate::rollout::Sequences;
use crate::settings::{DeviceChoice, Resume, config, settings, with_common_settings, with_shared_settings};
use crate::validation_config::ValidationConfig;
use stages_core::{ConfigProblem, Schedule};
use stages_policy::Precision;

/// Passes PPO's own settings to a macro, after its other arguments.
macro_rules! with_ppo_settings {
    ($macro:ident! $($arguments:tt)*) => {
        $macro! { $($arguments)* {
            /// Discount per step.
            gamma: f64 = 0.99,
            /// The lambda of generalised advantage estimation.
            gae_lambda: f64 = 0.95,
            /// Bound of |ratio - 1| in the policy's loss.
            clip_range: Schedule = Schedule::Constant(0.2),
            /// Bound of the change of a value, in units of the (normalised) return; none by default.
            clip_range_vf: Option<Schedule> = None,
            /// If true, advantages are normalised within each minibatch.
            normalize_advantage: bool = true,
            /// Weight of the entropy bonus.
            ent_coef: f64 = 0.0,
            /// Weight of the value loss.
            vf_coef: f64 = 0.5,
            /// Early stopping: skips the remaining updates on a rollout once the approximate KL divergence
            /// exceeds 1.5 times this value; off by default.
            target_kl: Option<f64> = None,
            /// If true, observations are normalised by running mean and variance (to within 10), frozen in
            /// the policy.
            normalize_obs: bool = false,
            /// If true, rewards are divided by the running standard deviation of their return discounted by
            /// `gamma` (to within 10).
            normalize_reward: bool = false,
        } }
    };
}

/// Adds the settings of sequences to an algorithm's own, for the macro in brackets.
macro_rules! with_sequence_settings {
    ([$macro:ident! $($arguments:tt)*] { $($own:tt)* }) => {
        $macro! { $($arguments)* {
            $($own)*
            /// Steps of a sequence, through which gradients flow; `n_steps` must be a multiple. The state
            /// before a sequence is the rollout's. None: `n_steps`.
            sequence_length: Option<usize> = None,
            /// Steps before each sequence that are run forward without a loss, with the present parameters,
            /// from the rollout's state before them. A sequence that begins earlier in its rollout has as
            /// many as there are.
            burn_in: usize = 0,
        } }
    };
}

with_ppo_settings!(with_sequence_settings! [settings!
    /// The checked settings of PPO.
    PpoSettings
]);
with_ppo_settings!(with_common_settings! config!
    "Configuration of `train/ppo`."
    PpoConfig(MlpPolicy, n_steps: 2048, batch_size: 64) => PpoSettings(sequence_length: None, burn_in: 0)
);
with_ppo_settings!(with_sequence_settings! [with_common_settings! config!
    "Configuration of `train/recurrent_ppo`."
    RecurrentPpoConfig(MlpLstmPolicy, n_steps: 128, batch_size: 128) => PpoSettings
]);
with_ppo_settings!(with_common_settings! config!
    "Configuration of `train/transformer_ppo`."
    TransformerPpoConfig(TransformerPolicy, n_steps: 128,
        batch_size: 128) => PpoSettings(sequence_length: None, burn_in: 0)
);

impl PpoSettings {
    /// The sequences into which a rollout is cut, if it is.
    pub(crate) fn sequences(&self) -> Option<Sequences> {
        self.sequence_length.map(|length| Sequences {
            length,
            burn_in: self.burn_in,
        })
    }

    fn check_sequences(&self) -> Result<(), ConfigProblem> {
        let n_steps = self.common.n_steps;
        let Some(length) = self.sequence_length else {
            ConfigProblem::new("burn_in", "a whole rollout has no steps before it")
                .hint("set `sequence_length`, too")
                .when(self.burn_in > 0)?;
            return self.common.check_sequences("n_steps", n_steps);
        };
        ConfigProblem::new(
            "sequence_length",
            format!("n_steps ({n_steps}) is not a multiple of {length}"),
        )
        .hint("a rollout is cut into whole sequences: choose a divisor of n_steps")
        .when(length == 0 || !n_steps.is_multiple_of(length))?;
        ConfigProblem::new("burn_in", format!("no sequence has {} steps before it", self.burn_in))
            .hint(format!(
                "the last of {length} steps in a rollout of {n_steps} has {}; raise n_steps",
                n_steps - length
            ))
            .when(self.burn_in > n_steps - length)?;
        self.common.check_sequences("sequence_length", length)
    }

    fn check(&self) -> Result<(), ConfigProblem> {
        self.check_sequences()?;
        ConfigProblem::new(
            "normalize_advantage",
            "advantages of a single sample cannot be normalised",
        )
        .hint("raise n_envs x n_steps and batch_size to at least 2")
        .when(self.normalize_advantage && (self.common.rollout() < 2 || self.common.batch_size < 2))?;
        check!(
            self; share: gamma, gae_lambda; weight: ent_coef, vf_coef; positive: target_kl;
            schedule: clip_range, clip_range_vf;
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_name_their_field() {
        let field = |change: &dyn Fn(&mut RecurrentPpoConfig)| {
            let mut config = RecurrentPpoConfig {
                total_timesteps: 1000,
                ..Default::default()
            };
            change(&mut config);
            config.settings().err().map(|problem| problem.field)
        };
        assert_eq!(field(&|_| {}), None);
        assert_eq!(field(&|c| c.total_timesteps = 0).as_deref(), Some("total_timesteps"));
        assert_eq!(field(&|c| c.batch_size = 200).as_deref(), Some("batch_size"));
        assert_eq!(field(&|c| c.batch_size = 64).as_deref(), Some("batch_size"));
        assert_eq!(field(&|c| c.n_steps = 0).as_deref(), Some("n_steps"));
        assert_eq!(field(&|c| (c.sequence_length, c.burn_in) = (Some(32), 96)), None);
        assert_eq!(field(&|c| (c.sequence_length, c.batch_size) = (Some(32), 96)), None);
        for wrong in [0, 48, 256] {
            let field = field(&|c| c.sequence_length = Some(wrong));
            assert_eq!(field.as_deref(), Some("sequence_length"), "{wrong}");
        }
        assert_eq!(
            field(&|c| (c.sequence_length, c.batch_size) = (Some(32), 80)).as_deref(),
            Some("batch_size")
        );
        assert_eq!(
            field(&|c| (c.sequence_length, c.burn_in) = (Some(32), 97)).as_deref(),
            Some("burn_in")
        );
        assert_eq!(field(&|c| c.burn_in = 8).as_deref(), Some("burn_in"));
        assert_eq!(field(&|c| c.gamma = 1.5).as_deref(), Some("gamma"));
        assert_eq!(field(&|c| c.gae_lambda = f64::NAN).as_deref(), Some("gae_lambda"));
        assert_eq!(
            field(&|c| c.learning_rate = Schedule::Linear(1.0, -1.0)).as_deref(),
            Some("learning_rate")
        );
        assert_eq!(
            field(&|c| c.policy_kwargs.shared_lstm = true).as_deref(),
            Some("policy_kwargs.shared_lstm")
        );
        assert_eq!(
            field(&|c| c.policy_kwargs.n_lstm_layers = 0).as_deref(),
            Some("policy_kwargs.n_lstm_layers")
        );
        assert_eq!(
            field(&|c| c.policy_kwargs.net_arch.pi = vec![0]).as_deref(),
            Some("policy_kwargs.net_arch")
        );
        let field = |change: &dyn Fn(&mut TransformerPpoConfig)| {
            let mut config = TransformerPpoConfig {
                total_timesteps: 1000,
                ..Default::default()
            };
            change(&mut config);
            config.settings().err().map(|problem| problem.field)
        };
        assert_eq!(field(&|_| {}), None);
        assert_eq!(
            field(&|c| c.policy_kwargs.window = 0).as_deref(),
            Some("policy_kwargs.window")
        );
        assert_eq!(
            field(&|c| c.policy_kwargs.n_heads = 3).as_deref(),
            Some("policy_kwargs.d_model")
        );
        assert_eq!(field(&|c| c.batch_size = 64).as_deref(), Some("batch_size"));
    }
}
