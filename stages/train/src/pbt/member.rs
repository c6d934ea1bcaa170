//! The training of one member from one selection to the next.

use crate::continuation::{Continuation, Origin};
use crate::stage::{Means, TrainSettings};
use crate::train_state::TrainState;
use crate::trainer::{self, Job};
use crate::validation::Validation;
use crate::{checkpoint, device};
use cache::{Artifact, ArtifactDigest, MemoKey};
use stages_core::{Context, StageError};
use stages_env::{OpenOptions, Split, evaluation_episodes};
use stages_policy::Policy;

/// The state of a member: its train state, and the training data that the train state does not hold, if any.
pub(crate) struct State {
    train_state: Vec<u8>,
    data: Option<Vec<u8>>,
}

impl State {
    /// The state as bytes: the length of the train state, the train state, the data.
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut bytes = (self.train_state.len() as u64).to_le_bytes().to_vec();
        bytes.extend(self.train_state);
        bytes.extend(self.data.unwrap_or_default());
        bytes
    }

    /// Decodes the train state and the data; `None` if the bytes are damaged.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(TrainState, Option<&[u8]>)> {
        let (length, rest) = bytes.split_first_chunk()?;
        let (state, data) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        Some((checkpoint::decode(state)?, (!data.is_empty()).then_some(data)))
    }
}

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
) -> Result<State, StageError> {
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
    )?;
    let origin = Origin::new(digest, common);
    let continuation = match segment.from {
        None => None,
        Some((bytes, seed)) => {
            let of = Origin {
                seed,
                ..origin.clone()
            };
            let (state, data) = State::decode(bytes).ok_or_else(|| {
                StageError::new("the train state of a member is damaged").hint("run `runner verify`")
            })?;
            if state.step >= segment.until {
                // A rollout was longer than a segment.
                return Ok(State {
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
            until: Some(segment.until),
            scratch: &scratch,
            context,
        },
    )?;
    let train_state = trained.train_state;
    Ok(State {
        train_state: train_state.ok_or_else(|| StageError::new("a member has no train state"))?,
        data: trained.data,
    })
}
