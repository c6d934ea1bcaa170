//! The training of one member from one selection to the next.

use crate::continuation::{Continuation, Origin};
use crate::stage::{Means, TrainSettings};
use crate::stored_states::SavedState;
use crate::trainer::{self, Job};
use crate::validation::Validation;
use crate::{checkpoint, device};
use cache::{Artifact, ArtifactDigest, MemoKey};
use stages_core::{Context, StageError};
use stages_env::{OpenOptions, Split, evaluation_episodes};
use stages_policy::Policy;

/// A segment of a member's training.
pub(crate) struct Segment<'a> {
    pub context: &'a Context,
    pub env: (ArtifactDigest, &'a Artifact),
    /// The policy with which all members begin.
    pub init: Option<&'a Policy>,
    /// The state from which the segment starts, and the seed of that state's environments.
    pub from: Option<(&'a [u8], u64)>,
    /// The step at which the segment ends, with the rollout that reaches it.
    pub until: u64,
    /// The number of steps between selections, and between validations where none is configured.
    pub interval: u64,
    /// The name of the folder of the segment's checkpoint.
    pub scratch: MemoKey,
}

/// Trains a member of a stage kind for a segment; returns the state at its end.
pub(super) fn train(
    kind: &'static str,
    settings: &dyn TrainSettings,
    segment: &Segment<'_>,
) -> Result<SavedState, StageError> {
    let (context, (digest, env)) = (segment.context, segment.env);
    let common = settings.common();
    let options = OpenOptions {
        normalise_as: segment.init.and_then(|init| init.spec().normalisation.clone()),
        ..OpenOptions::train(common.training.n_envs, common.training.seed)
    };
    let means = Means {
        open: &|| stages_env::open(&context.store, env, &options),
        teacher: None,
    };
    let held_out = evaluation_episodes(&context.store, env, Split::Validation)?;
    let make = || {
        let mut algorithm = settings.algorithm(&means)?;
        let common = algorithm.common_mut();
        common.training.save_train_state = true;
        common.training.until = Some(segment.until);
        // Without data held out, members are compared by what they earn in training.
        let every = if held_out.is_some() { segment.interval } else { 0 };
        common.training.validation.every.get_or_insert(every);
        Ok(algorithm)
    };
    let mut algorithm = make()?;
    let common = algorithm.common();
    let envs = stages_env::open(&context.store, env, &options)?;
    let (_, model) = device::choose(&make, envs.spec(), |_| false, context)?;
    let validation = Validation::open(
        &context.store,
        env,
        (common.training.validation, common.training.seed),
        options.normalise_as.as_ref(),
        &*envs,
    )?;
    let origin = Origin::new(digest, common);
    let continuation = match segment.from {
        None => None,
        Some((bytes, seed)) => {
            let of = Origin {
                seed,
                ..origin.clone()
            };
            let (state, data) = SavedState::decode(bytes).ok_or_else(|| {
                StageError::new("the train state of a member is damaged").hint("run `runner verify`")
            })?;
            if state.step >= segment.until {
                // A rollout was longer than a segment.
                return Ok(SavedState {
                    train_state: checkpoint::encode(&state)?,
                    data: data.map(<[u8]>::to_vec),
                });
            }
            Some(Continuation::of(state, data.map(<[u8]>::to_vec), &of, &origin))
        }
    };
    let scratch = context.store.scratch(segment.scratch)?;
    let trained = trainer::train(
        &mut *algorithm,
        Job {
            kind,
            env: envs,
            validation,
            model,
            init: segment.init,
            continuation,
            stored: None,
            scratch: &scratch,
            context,
        },
    )?;
    trained
        .state
        .ok_or_else(|| StageError::new("a member has no train state"))
}
