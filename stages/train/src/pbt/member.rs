//! The training of one member from one selection to the next.

use crate::continuation::{Continuation, Origin};
use crate::learner::Algorithm;
use crate::trainer::{self, Job};
use crate::validation::Validation;
use crate::{checkpoint, device};
use cache::{Artifact, ArtifactDigest, MemoKey};
use stages_core::{Context, StageError};
use stages_env::{OpenOptions, Split, evaluation_episodes};
use stages_policy::Policy;

/// A part of a member's training.
pub(crate) struct Segment<'a> {
    pub context: &'a Context,
    pub env: (ArtifactDigest, &'a Artifact),
    /// The policy that all members begin with.
    pub init: Option<&'a Policy>,
    /// The train state that it goes on from, and the seed of its environments.
    pub from: Option<(&'a [u8], u64)>,
    /// The step at which it ends, or the end of the rollout that reaches it.
    pub until: u64,
    /// Steps between selections, which are those between validations unless others are stated.
    pub interval: u64,
    /// The name of the folder of its checkpoint.
    pub scratch: MemoKey,
}

/// Trains with the algorithm that `make` makes; returns the train state at the end.
///
/// # Errors
/// Those of training.
pub(super) fn train<A: Algorithm>(
    kind: &'static str,
    make: impl Fn() -> A,
    segment: &Segment<'_>,
) -> Result<Vec<u8>, StageError> {
    let (context, (digest, env)) = (segment.context, segment.env);
    let held_out = evaluation_episodes(&context.store, env, Split::Validation)?;
    let make = || {
        let mut algorithm = make();
        let common = algorithm.common_mut();
        common.save_train_state = true;
        if held_out.is_some_and(|episodes| episodes > 0) && common.validation.every.is_none() {
            common.validation.every = Some(segment.interval);
        }
        algorithm
    };
    let algorithm = make();
    let common = algorithm.common();
    let normalise_as = segment.init.and_then(|init| init.spec().normalisation.clone());
    let options = OpenOptions {
        normalise_as: normalise_as.clone(),
        ..OpenOptions::train(common.n_envs, common.seed)
    };
    let envs = stages_env::open(&context.store, env, &options)?;
    let (_, model) = device::choose(&make, envs.spec(), |_| false, context)?;
    let validation = Validation::open(&context.store, env, common, normalise_as.as_ref())?;
    let origin = Origin::new(digest, common);
    let continuation = segment.from.map(|(bytes, seed)| {
        let of = Origin { seed, ..origin.clone() };
        checkpoint::decode(bytes)
            .map(|state| Continuation::of(state, None, &of, &origin))
            .ok_or_else(|| StageError::new("the train state of a member is damaged").hint("run `runner verify`"))
    });
    let scratch = context.store.scratch(segment.scratch)?;
    let trained = trainer::train(
        algorithm,
        Job {
            kind,
            env: envs,
            validation,
            model,
            init: segment.init,
            continuation: continuation.transpose()?,
            until: Some(segment.until),
            scratch: &scratch,
            context,
        },
    )?;
    trained
        .train_state
        .ok_or_else(|| StageError::new("a member has no train state"))
}
