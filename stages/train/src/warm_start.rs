//! A training that begins with the policy of another: with its parameters and the statistics that normalise
//! its observations. The optimiser, the statistics of rewards and all random numbers start anew.

use crate::running_mean_std::RunningMeanStd;
use crate::sharing::Sharing;
use stages_core::{Given, StageError};
use stages_env::EnvSpec;
use stages_policy::{AnyPolicy, Architecture, Policy};

/// The name of the input port.
pub(crate) const PORT: &str = "init";

/// The weight of the statistics of observations with which a training begins, in rollouts. (A policy does not
/// record how many rows they count.)
pub(crate) const WEIGHT: f64 = 100.0;

/// The policy at a port, if one is connected; of a network of ours with actions as a training here scales
/// them.
pub(crate) fn any(given: &Given<'_>, port: &str) -> Result<Option<AnyPolicy>, StageError> {
    let Some(input) = given.optional(port) else {
        return Ok(None);
    };
    AnyPolicy::read(given.store, &input.artifact).map(|policy| match policy {
        AnyPolicy::Native(policy) => Some(AnyPolicy::Native(policy.scaled())),
        other => Some(other),
    })
}

/// The network of ours at a port, if one is connected.
pub(crate) fn policy(given: &Given<'_>, port: &str) -> Result<Option<Policy>, StageError> {
    let any = any(given, port)?;
    any.map(|policy| policy.into_native(&format!("`{port}`"))).transpose()
}

/// Refuses a policy with other observations, other actions or another network, and one whose parameters are
/// not shared as they are here.
pub(crate) fn check(
    init: &Policy,
    env: &EnvSpec,
    architecture: &Architecture,
    sharing: Option<&Sharing>,
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
            serde_json::to_value(architecture)
                .map_or_else(|err| err.to_string(), |json| cache::canonical_json(&json))
        };
        return Err(StageError::new(format!(
            "the policy at `{PORT}` has another network: {}; here it is {}",
            text(init.architecture()),
            text(architecture)
        ))
        .hint("give `policy_kwargs` as the other training had them, and use the same stage kind"));
    }
    StageError::new(format!(
        "the policy at `{PORT}` was trained without `shared_across`: symbols have networks of their own"
    ))
    .hint("leave `policy_kwargs.shared_across` out, and multiply `net_arch.pi` by the number of symbols")
    .when(sharing.is_some_and(|sharing| !sharing.fits(init.params())))?;
    Ok(())
}

/// Refuses a policy that was trained with another `normalize_obs`.
pub(crate) fn check_normalize_obs(init: &Policy, normalize_obs: bool) -> Result<(), StageError> {
    let has = init.observation_normalisation().is_some();
    if has != normalize_obs {
        let (theirs, ours) = if has { ("with", "without") } else { ("without", "with") };
        return Err(StageError::new(format!(
            "the policy at `{PORT}` was trained {theirs} `normalize_obs`, and this training is {ours}"
        ))
        .hint(format!("set `normalize_obs: {has}`")));
    }
    Ok(())
}

/// The statistics of observations at the start, if observations are normalised: those of `init`, with a
/// weight in rows, or empty ones.
pub(crate) fn obs_rms(
    init: Option<&Policy>,
    normalize_obs: bool,
    obs_dim: usize,
    weight: f64,
) -> Result<Option<RunningMeanStd>, StageError> {
    init.map_or(Ok(()), |init| check_normalize_obs(init, normalize_obs))?;
    let rms = match init.and_then(Policy::observation_normalisation) {
        Some(normalisation) => RunningMeanStd::of(normalisation, weight),
        None => RunningMeanStd::new(obs_dim),
    };
    Ok(normalize_obs.then_some(rms))
}
