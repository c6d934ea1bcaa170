//! Opens the environments of `env` artifacts.

use crate::actions::ActionSpace;
use crate::batch::BatchEnv;
use crate::open_options::{OpenOptions, Split};
use crate::options::OptionsEnv;
use crate::portfolio::{ActingSimulator, PortfolioEnv};
use crate::spec::EnvSpec;
use crate::stocks::StocksEnv;
use crate::table::TableEnv;
use crate::{classic, hedging, lookup, options as options_env, portfolio, python, stocks, table};
use cache::{Artifact, Store};
use serde::Deserialize;
use stages_core::StageError;
use std::sync::OnceLock;

/// The part of the `meta` of an `env` artifact that all families share.
#[derive(Deserialize)]
struct Meta {
    family: String,
}

/// Opens the environment of an artifact.
pub(crate) type Open = fn(&Store, &Artifact, &OpenOptions) -> Result<Box<dyn BatchEnv>, StageError>;

/// A family of environments that another crate defines.
#[derive(Clone, Copy, Debug)]
pub struct EnvFamily {
    /// The name of the family in the `meta` of its artifacts.
    pub name: &'static str,
    /// Opens an artifact, as [`open_any`] does.
    pub open: Open,
    /// The number of evaluation episodes of a split, as [`evaluation_episodes`] gives it.
    pub evaluation_episodes: fn(&Store, &Artifact, Split) -> Result<Option<usize>, StageError>,
}

static REGISTERED: OnceLock<&'static [EnvFamily]> = OnceLock::new();

/// Adds the families of other crates to those of this one, for the whole process. The first call counts: a
/// program has one list of them, beside its list of stage kinds.
pub fn register(families: &'static [EnvFamily]) {
    REGISTERED.get_or_init(|| families);
}

fn registered(name: &str) -> Option<&'static EnvFamily> {
    let families = REGISTERED.get().copied().unwrap_or_default();
    families.iter().find(|family| family.name == name)
}

/// Opens the environment that an `env` artifact holds, for a program that observes numbers.
///
/// # Errors
/// When the artifact is not an environment's, its blobs are missing or damaged, or the options do not fit it;
/// when its actions are candidates.
pub fn open(
    store: &Store,
    artifact: &Artifact,
    options: &OpenOptions,
) -> Result<Box<dyn BatchEnv>, StageError> {
    let env = open_any(store, artifact, options)?;
    refuse_candidates(env.spec())?;
    Ok(env)
}

/// Refuses environments whose actions are candidates.
///
/// # Errors
/// When the actions of `spec` are candidates.
pub fn refuse_candidates(spec: &EnvSpec) -> Result<(), StageError> {
    StageError::new(format!(
        "the states and candidate actions of `{}` are ids of symbols, not numbers",
        spec.name
    ))
    .hint("train/ppo, train/recurrent_ppo and train/a2c learn from candidates")
    .when(matches!(spec.action_space, ActionSpace::Candidates { .. }))
}

/// Opens the environment that an `env` artifact holds, for a program that takes candidate actions as well.
///
/// # Errors
/// When the artifact is not an environment's, its blobs are missing or damaged, or the options do not fit it.
pub fn open_any(
    store: &Store,
    artifact: &Artifact,
    options: &OpenOptions,
) -> Result<Box<dyn BatchEnv>, StageError> {
    StageError::new("cannot open 0 environments")
        .hint("set the number of environments to 1 or more")
        .when(options.num_envs == 0)?;
    match family(artifact)?.as_str() {
        classic::FAMILY => classic::open(store, artifact, options),
        hedging::FAMILY => Ok(Box::new(hedging::open(store, artifact, options)?)),
        lookup::FAMILY => Ok(Box::new(lookup::open(store, artifact, options)?)),
        options_env::FAMILY => Ok(Box::new(OptionsEnv::open(store, artifact, options)?)),
        python::FAMILY => Ok(Box::new(python::open(store, artifact, options)?)),
        stocks::FAMILY => Ok(Box::new(StocksEnv::open(store, artifact, options)?)),
        table::FAMILY => Ok(Box::new(TableEnv::open(store, artifact, options)?)),
        other => match registered(other) {
            Some(family) => (family.open)(store, artifact, options),
            None => Err(StageError::new(format!("unknown environment family `{other}`")).hint(
                "`runner` opens all families; an artifact of another version needs its stage run again",
            )),
        },
    }
}

/// The number of evaluation episodes of a split: one for each range of dates of each world. With
/// [`Split::Validation`] and [`Split::Test`], environment i of a batch runs the i-th of them, and then again
/// from the first on. `None` for environments without dates, which draw other episodes for each split;
/// `Some(0)` where nothing is held out for that split.
///
/// # Errors
/// When the artifact is not an environment's, or damaged.
pub fn evaluation_episodes(
    store: &Store,
    artifact: &Artifact,
    split: Split,
) -> Result<Option<usize>, StageError> {
    match family(artifact)?.as_str() {
        options_env::FAMILY | stocks::FAMILY | table::FAMILY => {
            portfolio::evaluation_episodes(store, artifact, split).map(Some)
        }
        other => {
            registered(other).map_or(Ok(None), |family| (family.evaluation_episodes)(store, artifact, split))
        }
    }
}

/// The names of the choices of an environment's actions, in the order of its action mask, of each component
/// its own; numbers where choices have no names. None where actions are continuous.
///
/// # Errors
/// When the artifact is not an environment's, or damaged.
pub fn choice_names(store: &Store, artifact: &Artifact, spec: &EnvSpec) -> Result<Vec<String>, StageError> {
    fn of<S: ActingSimulator>(store: &Store, artifact: &Artifact) -> Result<Vec<String>, StageError> {
        let open = |options| PortfolioEnv::<S>::open(store, artifact, &options);
        let env = open(OpenOptions::train(1, 0))
            .or_else(|refused| open(OpenOptions::test(1, 0)).map_err(|_| refused))?;
        Ok(env.simulator().choices())
    }
    match (family(artifact)?.as_str(), &spec.action_space) {
        (options_env::FAMILY, _) => of::<options_env::OptionsSimulator>(store, artifact),
        (stocks::FAMILY, _) => of::<stocks::StocksSimulator>(store, artifact),
        (_, ActionSpace::Discrete { names, .. }) => Ok(names.clone()),
        (_, ActionSpace::MultiDiscrete { choices, .. }) => Ok(choices
            .iter()
            .flat_map(|&n| (0..n).map(|choice| choice.to_string()))
            .collect()),
        _ => Ok(Vec::new()),
    }
}

/// True if the episodes of an environment are drawn by this program from random numbers, others for each
/// seed: it holds no data out, and costs nothing to open again.
///
/// # Errors
/// When the artifact is not an environment's.
pub fn draws_episodes(artifact: &Artifact) -> Result<bool, StageError> {
    Ok(matches!(
        family(artifact)?.as_str(),
        classic::FAMILY | lookup::FAMILY | hedging::FAMILY
    ))
}

/// The family of an `env` artifact, such as `classic` or `options`.
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
