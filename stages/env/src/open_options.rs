//! The options of opening an environment.

use crate::spec::Normalisation;
use serde::{Deserialize, Serialize};
use stages_core::StageError;

/// The dates that an environment runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Split {
    /// The training dates, with random starts and lengths of episodes.
    Train,
    /// The data that training selects a policy by: environment i of a batch runs evaluation episode i of
    /// [`evaluation_episodes`](crate::evaluation_episodes), in turn, whole, from first to last.
    Validation,
    /// The test data, likewise.
    Test,
}

impl Split {
    /// The split's part of the name of a random stream.
    pub(crate) fn word(self) -> u64 {
        match self {
            Self::Train => 0,
            Self::Test => 1,
            Self::Validation => 2,
        }
    }

    /// The error of an environment that has no dates of this split.
    pub(crate) fn without_dates(self) -> StageError {
        let (what, hint) = match self {
            Self::Train => (
                "no training dates, only test dates",
                "set test_fraction below 1, or give `train` and `test`",
            ),
            Self::Validation => ("no validation data", "give `validation: { worlds: 8 }`, or dates"),
            Self::Test => ("no test data", "give `test`, or test_fraction"),
        };
        StageError::new(format!("this environment has {what}")).hint(hint)
    }

    /// The number of the split's table in environments with one table for training and one for testing:
    /// validation draws other episodes from the training table.
    pub(crate) fn table(self) -> usize {
        usize::from(self == Self::Test)
    }
}

/// The options of opening an environment.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// B, the number of environments stepped together; at least 1.
    pub num_envs: usize,
    /// Environment i depends on (seed, i) alone.
    pub seed: u64,
    /// The dates; environments without dates draw other random numbers for each.
    pub split: Split,
    /// Runs training dates as the other splits: environment i runs the i-th range, in turn, whole.
    pub whole: bool,
    /// Shows observations in the normalisation of another environment with the same observation, as a policy
    /// trained there expects; `None` for the environment's own. Environments that do not normalise ignore it.
    pub normalise_as: Option<Normalisation>,
    /// The number of processes that step the environments of a user's program; `None` for one for each thread
    /// of rayon's current pool. Environments without a program have none.
    pub processes: Option<usize>,
    /// Keeps the prices of `env/table` beside what steps pay, for accounts that live forward.
    pub prices: bool,
}

impl OpenOptions {
    /// `num_envs` environments over the training dates.
    pub fn train(num_envs: usize, seed: u64) -> Self {
        Self {
            num_envs,
            seed,
            split: Split::Train,
            whole: false,
            normalise_as: None,
            processes: None,
            prices: false,
        }
    }

    /// `num_envs` environments over a split, each over a whole range.
    pub fn whole(split: Split, num_envs: usize) -> Self {
        Self {
            split,
            whole: true,
            ..Self::train(num_envs, 0)
        }
    }

    /// `num_envs` environments over the validation data.
    pub fn validation(num_envs: usize, seed: u64) -> Self {
        Self {
            split: Split::Validation,
            ..Self::test(num_envs, seed)
        }
    }

    /// `num_envs` environments over the test dates.
    pub fn test(num_envs: usize, seed: u64) -> Self {
        Self {
            split: Split::Test,
            ..Self::train(num_envs, seed)
        }
    }
}
