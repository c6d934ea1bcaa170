//! The configuration of `evaluate/backtest`.

use crate::risk_aversion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::ConfigProblem;
use stages_env::{BaselineName, OpenOptions, Split};
use stages_policy::AnyPolicy;

stages_core::settings! {
    /// Configuration of `evaluate/backtest`.
    pub struct BacktestConfig {
        /// The data: the test range, or what the environment holds out for validation, by which a search may
        /// choose. Nothing of the test range is read for it, and it does not count as a trial. Environments
        /// that hold nothing out (`env/classic`, `env/lookup`, `env/hedging`) draw other episodes for each.
        pub on: EvaluatedOn = EvaluatedOn::Test,
        /// If true, the policy takes its most likely action, otherwise it samples one.
        pub deterministic: bool = true,
        /// Seed of sampled actions, of the bootstrap and, where there are no test dates, of the starts of
        /// episodes.
        pub seed: u64 = 0,
        /// The number of episodes played where the environment has no test dates (`env/classic`,
        /// `env/lookup`, `env/hedging`).
        pub episodes: usize = 20,
        /// The baselines that the policy is compared with over the test dates; each where the environment has
        /// it.
        pub baselines: Vec<BaselineName> = BaselineName::ALL.to_vec(),
        /// The number of runs of the random baseline, spread over the evaluation episodes, at least one each.
        pub random_paths: usize = 20,
        /// The number of runs of the policy with drawn actions beside its greedy run, spread over the
        /// evaluation episodes like those of the random baseline.
        pub drawn_paths: usize = 4,
        /// If true, the policy runs again with market features of another world, with its slate shuffled and,
        /// if it remembers, with its memory reset at each step.
        pub ablations: bool = true,
        /// If true, the policy is also compared with the best rule of the features that it sees and, on
        /// `env/options`, with the best constant rule of the menu and, where the environment has hidden
        /// regimes, with the rules of an oracle and of a filter, all chosen by simulation on the training and
        /// validation data, or where the policy is evaluated on validation data, on the training data alone;
        /// on `env/table` with discrete actions, with each choice taken always, too.
        pub rules: bool = true,
        /// The least number of trials by which the Sharpe ratio is deflated. It is raised to the number of
        /// policies that were evaluated on the environment's test data, by any pipeline with this home, or
        /// are by this one.
        pub trials: usize = 1,
        /// The risk aversion of the mean-variance utility; without it, that of the environment's reward where
        /// it is `mean_variance` or `exponential_utility`, else 10.
        pub risk_aversion: Option<f64> = None,
        /// Resamples of the bootstrap.
        pub bootstrap_draws: usize = 1000,
        /// Mean length of the bootstrap's blocks where there is one world, in steps; `auto`: as long as the
        /// policy holds a position on average, and at most a twentieth of the test range.
        pub bootstrap_block: Block = Block::Auto(Auto::Auto),
    }
}

/// The data of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EvaluatedOn {
    /// The test data.
    Test,
    /// The validation data.
    Validation,
}

/// The mean length of the bootstrap's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Block {
    /// `auto`: the holding period of the policy.
    Auto(Auto),
    /// So many steps.
    Steps(f64),
}

/// The word `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Auto {
    /// The holding period of the policy.
    Auto,
}

impl BacktestConfig {
    /// The split that is played.
    pub(crate) fn split(&self) -> Split {
        match self.on {
            EvaluatedOn::Test => Split::Test,
            EvaluatedOn::Validation => Split::Validation,
        }
    }

    /// The options with which an environment without test dates is opened.
    pub(crate) fn open(&self, policy: &AnyPolicy) -> OpenOptions {
        OpenOptions {
            normalise_as: policy.spec().normalisation.clone(),
            split: self.split(),
            ..OpenOptions::test(self.episodes, self.seed)
        }
    }

    /// Checks all values.
    pub(crate) fn validate(&self) -> Result<(), ConfigProblem> {
        for (field, value) in [
            ("episodes", self.episodes),
            ("random_paths", self.random_paths),
            ("bootstrap_draws", self.bootstrap_draws),
            ("drawn_paths", self.drawn_paths),
            ("trials", self.trials),
        ] {
            ConfigProblem::new(field, "must be at least 1")
                .hint("the defaults are 20, 20, 1000, 4 and 1")
                .when(value == 0)?;
        }
        if let Block::Steps(steps) = self.bootstrap_block
            && !(1.0..=1e9).contains(&steps)
        {
            return Err(ConfigProblem::new("bootstrap_block", "must be at least 1 step")
                .hint("the default is `auto`"));
        }
        ConfigProblem::new("trials", "counts evaluations of test data, and `on` is `validation`")
            .hint("leave it out: the figures of validation data are not deflated")
            .when(self.on == EvaluatedOn::Validation && self.trials > 1)?;
        risk_aversion::validate(self.risk_aversion)
    }
}
