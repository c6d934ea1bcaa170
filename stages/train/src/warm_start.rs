//! A training that begins with the policy of another: its parameters and the statistics that its observations are normalised
//! by. The optimiser, the statistics of rewards and all random numbers begin anew.

use crate::settings::Settings;
use stages_core::{Given, StageError};
use stages_env::EnvSpec;
use stages_policy::{Architecture, Policy, policy};

/// The port.
pub(crate) const PORT: &str = "init";

/// As many rollouts of the new training as the statistics of observations that it begins with count for. (A policy does not
/// tell from how many they are.)
pub(crate) const WEIGHT: f64 = 100.0;

/// The policy at the port, if one is connected.
pub(crate) fn policy(given: &Given<'_>) -> Result<Option<Policy>, StageError> {
    let Some(input) = given.optional(PORT) else {
        return Ok(None);
    };
    let entry = input
        .artifact
        .entry(policy::ENTRY)
        .ok_or_else(|| StageError::new(format!("the policy at `{PORT}` has no `{}`", policy::ENTRY)))?;
    Policy::load(&given.store.blob(entry.blob)?).map(Some)
}

/// Refuses a policy that a training with these settings on this environment cannot go on from.
pub(crate) fn check(
    init: &Policy,
    settings: &Settings,
    env: &EnvSpec,
    architecture: &Architecture,
) -> Result<(), StageError> {
    let theirs = init.spec();
    if let Some(difference) = theirs.difference(env) {
        return Err(StageError::new(format!(
            "the policy at `{PORT}` was trained on `{}` and this is `{}`: {difference}",
            theirs.name, env.name
        ))
        .hint("train on an environment with the same features, slate and actions, or without `init`"));
    }
    if init.architecture() != architecture {
        let text = |architecture: &Architecture| {
            serde_json::to_value(architecture).map_or_else(|err| err.to_string(), |json| cache::canonical_json(&json))
        };
        return Err(StageError::new(format!(
            "the policy at `{PORT}` has another network: {}; here it is {}",
            text(init.architecture()),
            text(architecture)
        ))
        .hint("give `policy_kwargs` as the other training had them, and use the same stage kind"));
    }
    let has = init.observation_normalisation().is_some();
    if has != settings.normalize_obs {
        let (theirs, ours) = if has { ("with", "without") } else { ("without", "with") };
        return Err(StageError::new(format!(
            "the policy at `{PORT}` was trained {theirs} `normalize_obs`, and this training is {ours}"
        ))
        .hint(format!("set `normalize_obs: {has}`")));
    }
    Ok(())
}
