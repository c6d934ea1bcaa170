//! The configuration of `evaluate/backtest`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::ConfigProblem;
use stages_env::OpenOptions;
use stages_env::options::Baseline;
use stages_policy::Policy;

/// Configuration of `evaluate/backtest`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BacktestConfig {
    /// If true, the policy takes its most likely action, otherwise it samples one.
    pub deterministic: bool,
    /// Seed of sampled actions, of the bootstrap and, where there are no test dates, of the starts of episodes.
    pub seed: u64,
    /// The number of episodes played where the environment has no test dates (`env/classic`, `env/lookup`, `env/hedging`).
    pub episodes: usize,
    /// The baselines that the policy is compared with over the test dates.
    pub baselines: Vec<Baseline>,
    /// The number of runs that the random baseline is the mean of.
    pub random_paths: usize,
    /// Resamples of the bootstrap of the Sharpe ratio.
    pub bootstrap_draws: usize,
    /// Mean length of the bootstrap's blocks, in steps.
    pub bootstrap_block: f64,
}

impl Default for BacktestConfig {
    fn default() -> Self {
        Self {
            deterministic: true,
            seed: 0,
            episodes: 20,
            baselines: Baseline::ALL.to_vec(),
            random_paths: 20,
            bootstrap_draws: 1000,
            bootstrap_block: 10.0,
        }
    }
}

impl BacktestConfig {
    /// The options with which an environment without test dates is opened.
    pub(crate) fn open(&self, policy: &Policy) -> OpenOptions {
        OpenOptions {
            normalise_as: policy.spec().normalisation.clone(),
            ..OpenOptions::test(self.episodes, self.seed)
        }
    }

    /// Checks all values.
    ///
    /// # Errors
    /// The first mistake.
    pub(crate) fn validate(&self) -> Result<(), ConfigProblem> {
        for (field, value) in [
            ("episodes", self.episodes),
            ("random_paths", self.random_paths),
            ("bootstrap_draws", self.bootstrap_draws),
        ] {
            if value == 0 {
                return Err(ConfigProblem::new(field, "must be at least 1").hint("the defaults are 20, 20 and 1000"));
            }
        }
        if self.bootstrap_block.is_nan() || self.bootstrap_block < 1.0 {
            return Err(ConfigProblem::new("bootstrap_block", "must be at least 1 step").hint("the default is 10"));
        }
        Ok(())
    }
}
