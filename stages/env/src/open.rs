//! From an `env` artifact to environments that can be stepped.

use crate::{BatchEnv, Normalisation, classic, options as options_env};
use cache::{Artifact, Store};
use serde::{Deserialize, Serialize};
use stages_core::StageError;

/// Which dates an environment runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Split {
    /// The training dates, with random starts and lengths of episodes.
    Train,
    /// The test dates, whole, from first to last.
    Test,
}

impl Split {
    /// The word that it adds to a random stream's name.
    pub(crate) fn word(self) -> u64 {
        match self {
            Self::Train => 0,
            Self::Test => 1,
        }
    }
}

/// How to open an environment.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// B, how many environments are stepped together; at least 1.
    pub num_envs: usize,
    /// Environment i depends on (seed, i) alone.
    pub seed: u64,
    /// Which dates it runs over; environments without dates draw other random numbers for each.
    pub split: Split,
    /// Shows observations in the normalisation of another environment with the same observation, as a policy trained
    /// there expects; `None` for the environment's own. Environments that do not normalise ignore it.
    pub normalise_as: Option<Normalisation>,
}

impl OpenOptions {
    /// `num_envs` environments over the training dates.
    pub fn train(num_envs: usize, seed: u64) -> Self {
        Self {
            num_envs,
            seed,
            split: Split::Train,
            normalise_as: None,
        }
    }

    /// `num_envs` environments over the test dates.
    pub fn test(num_envs: usize, seed: u64) -> Self {
        Self {
            num_envs,
            seed,
            split: Split::Test,
            normalise_as: None,
        }
    }
}

/// What every `env` artifact says of itself in its `meta`.
#[derive(Deserialize)]
struct Meta {
    family: String,
}

/// Opens the environment that an `env` artifact holds.
///
/// # Errors
/// When the artifact is not an environment's, its blobs are missing or damaged, or the options do not fit it.
pub fn open(store: &Store, artifact: &Artifact, options: &OpenOptions) -> Result<Box<dyn BatchEnv>, StageError> {
    if options.num_envs == 0 {
        return Err(StageError::new("cannot open 0 environments").hint("set the number of environments to 1 or more"));
    }
    match family(artifact)?.as_str() {
        classic::FAMILY => classic::open(store, artifact, options),
        options_env::FAMILY => Ok(Box::new(options_env::open(store, artifact, options)?)),
        other => Err(
            StageError::new(format!("this program knows no environment of family `{other}`"))
                .hint("the artifact was made by another version; run its stage again"),
        ),
    }
}

/// The family of an `env` artifact: `classic` or `options`.
fn family(artifact: &Artifact) -> Result<String, StageError> {
    serde_json::from_value::<Meta>(artifact.meta.clone())
        .map(|meta| meta.family)
        .map_err(|err| {
            StageError::new(format!(
                "the artifact (type `{}`) is not an environment: {err}",
                artifact.kind
            ))
        })
}
