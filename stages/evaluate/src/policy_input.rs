//! The policy to evaluate, and its fit with the environment.

use stages_core::{Context, StageError};
use stages_env::EnvSpec;
use stages_numerics::random::Random;
use stages_policy::{AnyPolicy, Mode};

/// The policy at the port `policy`.
pub(crate) fn load(context: &Context) -> Result<AnyPolicy, StageError> {
    AnyPolicy::read(&context.store, &context.input("policy")?.artifact)
}

/// Refuses a policy that was trained on another environment's observations or actions, naming the first that
/// differs.
pub(crate) fn check_fits(policy: &EnvSpec, env: &EnvSpec) -> Result<(), StageError> {
    match policy.difference(env) {
        None => Ok(()),
        Some(difference) => Err(StageError::new(format!(
            "the policy was trained on another environment: {difference}"
        ))
        .hint(
            "evaluate it on an environment with the same features, slate and actions, or train it on this \
            one",
        )),
    }
}

/// The mode of acting: the most likely action, or a drawn one.
pub(crate) fn mode(deterministic: bool, random: &mut Random) -> Mode<'_> {
    match deterministic {
        true => Mode::Greedy,
        false => Mode::Sample(random),
    }
}
