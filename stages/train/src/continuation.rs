//! Trainings that go on where another ended (`resume: continue`): from its whole train state, which its
//! policy's artifact holds if it was asked to (`save_train_state`).

use crate::checkpoint;
use crate::selection::Selection;
use crate::settings::Common;
use crate::train_state::TrainState;
use crate::validation_config::ValidationConfig;
use crate::warm_start::PORT;
use cache::ArtifactDigest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stages_core::{Given, StageError};
use stages_policy::{Policy, policy};

/// The name of the train state's entry in the artifact of a policy, and of the field of its `meta` about it.
pub(crate) const ENTRY: &str = "train_state.safetensors";
pub(crate) const META: &str = "train_state";

/// The name of the entry of the training data beside the train state.
pub(crate) const DATA: &str = "replay.bin";

/// The environments and the validation of a train state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// The digest of the environments' artifact.
    pub env: String,
    /// The environments' seed.
    pub seed: u64,
    /// The settings by which the best policy is selected.
    pub validation: ValidationConfig,
}

impl Origin {
    pub(crate) fn new(env: ArtifactDigest, common: &Common) -> Self {
        Self {
            env: env.to_string(),
            seed: common.training.seed,
            validation: common.training.validation,
        }
    }
}

/// The train state of the policy at `init`.
pub(crate) struct Continuation {
    state: TrainState,
    /// The training data that the train state does not hold, if there is any.
    data: Option<Vec<u8>>,
    /// True if the state is of the same environments, whose episodes go on.
    same_envs: bool,
    /// True if the state's best policy was selected in the same environments, by the same settings.
    same_validation: bool,
}

/// The train state of the policy `init`, for a training of the stage kind `kind` in the environments `here`.
pub(crate) fn read(
    given: &Given<'_>,
    kind: &str,
    init: &Policy,
    here: &Origin,
) -> Result<Continuation, StageError> {
    StageError::new(format!(
        "the policy at `{PORT}` was trained by `{}`, whose train state `{kind}` cannot continue",
        init.kind()
    ))
    .hint("set `resume: fresh`, which begins with its parameters alone")
    .when(init.kind() != kind)?;
    let artifact = &given.input(PORT)?.artifact;
    let entry = artifact.entry(ENTRY).ok_or_else(|| {
        StageError::new(format!("the policy at `{PORT}` has no train state to continue"))
            .hint("set `save_train_state: true` on the stage that trains it, or `resume: fresh` here")
    })?;
    let damaged = || {
        StageError::new(format!(
            "the train state of the policy at `{PORT}` is of another version"
        ))
        .hint("train the policy again, or set `resume: fresh`")
    };
    // A train state does not say the scale of its actions, its policy does.
    if let Some(policy) = artifact.entry(policy::ENTRY)
        && Policy::load(&given.store.blob(policy.blob)?)?.architecture() != init.architecture()
    {
        return Err(damaged());
    }
    let state = checkpoint::decode(&given.store.blob(entry.blob)?).ok_or_else(damaged)?;
    let origin = artifact.meta.get(META).cloned().unwrap_or(Value::Null);
    let origin: Origin = serde_json::from_value(origin).map_err(|_| damaged())?;
    let data = match artifact.entry(DATA) {
        None => None,
        Some(entry) => Some(given.store.blob(entry.blob)?.to_vec()),
    };
    Ok(Continuation {
        state,
        data,
        same_envs: origin.env == here.env && origin.seed == here.seed,
        same_validation: origin == *here,
    })
}

/// The first state of a training that goes on from another.
pub(crate) struct Begun {
    pub state: TrainState,
    /// True if the environments go on, too; in other environments, episodes begin anew.
    pub go_on: bool,
    /// The training data that the state does not hold, if there is any.
    pub data: Option<Vec<u8>>,
}

impl Continuation {
    /// The continuation of a train state, and the data beside it, from the environments `of` in a training in
    /// `here`.
    pub(crate) fn of(state: TrainState, data: Option<Vec<u8>>, of: &Origin, here: &Origin) -> Self {
        Self {
            state,
            data,
            same_envs: of.env == here.env && of.seed == here.seed,
            same_validation: true,
        }
    }

    /// The first state of a training that would begin with `fresh`.
    pub(crate) fn begin(self, fresh: TrainState, end: u64) -> Result<Begun, StageError> {
        let mut state = self.state;
        StageError::new(format!(
            "the policy at `{PORT}` has been trained for {} steps already, and this training ends at {end}",
            state.step
        ))
        .hint("with `resume: continue`, total_timesteps and until count from the start of the first training")
        .when(state.step >= end)?;
        let normalised = |state: &TrainState| {
            let statistics = &state.statistics;
            (statistics.obs_rms.is_some(), statistics.return_rms.is_some())
        };
        StageError::new(format!(
            "the policy at `{PORT}` was trained with another normalize_obs or normalize_reward"
        ))
        .hint("set them as in that training, or `resume: fresh`")
        .when(normalised(&state) != normalised(&fresh))?;
        let go_on = self.same_envs && state.returns.len() == fresh.returns.len();
        if state.statistics.obs_rms.is_none() {
            state.statistics.normalisation = fresh.statistics.normalisation.clone();
        }
        state.statistics.return_gamma = fresh.statistics.return_gamma;
        if !go_on {
            state = TrainState {
                env: fresh.env,
                obs: fresh.obs,
                mask: fresh.mask,
                episode_start: fresh.episode_start,
                state: fresh.state,
                // With a replay buffer go target networks, which depend on no environment.
                extra: if self.data.is_some() { state.extra } else { fresh.extra },
                returns: fresh.returns,
                lengths: fresh.lengths,
                discounted: fresh.discounted,
                ..state
            };
        }
        if !self.same_validation {
            state.selection = Selection::default();
        }
        Ok(Begun {
            state,
            go_on,
            data: self.data,
        })
    }
}
