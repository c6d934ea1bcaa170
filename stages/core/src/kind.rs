//! Stage kinds.

use crate::context::Context;
use crate::error::{ConfigProblem, StageError};
use crate::features;
use crate::input::Source;
use crate::memo::{Given, Share};
use crate::port::{PlanContext, Planned, Ports};
use crate::settings::Settings;
use crate::tested::Tested;
use cache::ArtifactDigest;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The output artifacts of an action, by port.
pub type Outputs = BTreeMap<String, ArtifactDigest>;

/// The work per unit of a configuration, relative to the usual configuration of its kind.
#[derive(Clone, Debug, PartialEq)]
pub struct RelativeCost {
    /// The ratio to the usual work, as measured.
    pub times: f64,
    /// The settings that cause the extra work.
    pub because: String,
    /// The cheaper settings, as a hint.
    pub cheaper: String,
}

/// A kind of stage: configuration, ports and code.
///
/// The result of a stage must be a function of its configuration (less [`StageKind::NOT_IN_KEY`]), its inputs
/// and its sources: not of the clock, the machine or the number of threads. Raise [`StageKind::VERSION`] when
/// the output for the same key could change; a golden test guards it.
pub trait StageKind: Send + Sync + 'static {
    /// The configuration type. Use `#[serde(default, deny_unknown_fields)]`: the `Default` is the one place
    /// of defaults, and the doc comments, with units, are the printed reference. Where a required field is
    /// empty, [`StageKind::check`] refuses it. A map with keys of the user's choice is empty by default.
    type Config: Serialize + DeserializeOwned + JsonSchema + Default + Send + Sync + 'static;

    /// The kind's name, family first: `greeks/analytic`.
    const NAME: &'static str;
    /// The version of the implementation.
    const VERSION: u32;
    /// The kind's description, in one line.
    const ABOUT: &'static str;
    /// Top-level fields of the configuration that cannot change the result (paths, intervals, threads).
    const NOT_IN_KEY: &'static [&'static str] = &[];
    /// The reason why the result differs between runs, for a kind that is not deterministic.
    const NONDETERMINISTIC: Option<&'static str> = None;
    /// The configuration field, by its dotted path, that the running time is proportional to: a whole number,
    /// such as the steps of a training. A plan scales the last measured time by it.
    const WORK_UNITS: Option<&'static str> = None;
    /// The configuration field, by its dotted path, that stops the work at fewer units than those of
    /// [`StageKind::WORK_UNITS`] and leaves everything else as it is, so that more work goes on from there.
    /// Without it, the work is that of the other field.
    const UNTIL: Option<&'static str> = None;
    /// The top-level configuration field that takes the number of trials, for a kind that evaluates the
    /// policy at the port `policy` on the test data of the environment at the port `env`: the policies that
    /// were evaluated on that data. What is written there is a lower bound, which a plan raises before it
    /// makes the key. A configuration that does not [read test data](StageKind::reads_test) is no trial.
    const TRIALS: Option<&'static str> = None;
    /// The input ports that accept features by contract; all others refuse them.
    const FEATURES_BY_CONTRACT: &'static [&'static str] = &[];
    /// True for a kind whose work has parts that run on other machines: the stage itself then stays on the
    /// engine's.
    const HAS_PARTS: bool = false;
    /// The input and output ports.
    const PORTS: Ports;

    /// The cost of a configuration whose work per unit (row, step) is a multiple of the usual; `None` for all
    /// others. A plan scales its estimate by it, and warns from a multiple of fifty on.
    fn relative_cost(&self, _config: &Self::Config) -> Option<RelativeCost> {
        None
    }

    /// Checks a configuration before anything runs, and returns what is known of the outputs' contents. The
    /// default implementation knows only their types.
    fn check(&self, _config: &Self::Config, _plan: &PlanContext) -> Planned {
        Ok(Self::PORTS.provided())
    }

    /// The files outside the pipeline that the stage reads, sorted by name. Both their digests and their
    /// names are part of the key; leave a name empty where it has no meaning.
    fn sources(&self, _config: &Self::Config, _base: &Path) -> Result<Vec<Source>, ConfigProblem> {
        Ok(Vec::new())
    }

    /// The test data, for an environment whose evaluations count trials.
    fn tested(&self, _config: &Self::Config) -> Option<Tested> {
        None
    }

    /// True for an evaluation of test data, by which nothing may be chosen: neither a policy nor a setting.
    fn reads_test(&self, _config: &Self::Config) -> bool {
        false
    }

    /// Runs the stage.
    fn run(&self, config: &Self::Config, context: &Context) -> Result<Outputs, StageError>;

    /// Runs one of the parts that the stage gives to [`RunParts`](crate::RunParts), on another machine: the
    /// memos that it makes are its result.
    fn run_part(&self, _config: &Self::Config, _context: &Context, _part: Value) -> Result<(), StageError> {
        Err(StageError::new(format!("`{}` has no parts", Self::NAME)))
    }

    /// The share of the work for these inputs and sources that is cached as memos or checkpoints. The
    /// implementation makes the same keys as [`StageKind::run`], computes no value and writes nothing. `None`
    /// where the kind caches no partial results.
    fn cached_share(&self, _config: &Self::Config, _given: &Given<'_>) -> Result<Option<Share>, StageError> {
        Ok(None)
    }
}

/// A type-erased [`StageKind`]: its configuration is [`Settings`].
pub trait AnyStage: Send + Sync {
    /// [`StageKind::NAME`].
    fn name(&self) -> &'static str;
    /// [`StageKind::VERSION`].
    fn version(&self) -> u32;
    /// [`StageKind::ABOUT`].
    fn about(&self) -> &'static str;
    /// [`StageKind::PORTS`].
    fn ports(&self) -> Ports;
    /// [`StageKind::NONDETERMINISTIC`].
    fn nondeterministic(&self) -> Option<&'static str>;
    /// The work of a configuration: the value of the [`StageKind::WORK_UNITS`] field, or of the
    /// [`StageKind::UNTIL`] field where that is given.
    fn work_units(&self, config: &Settings) -> Option<u64>;
    /// The [`StageKind::UNTIL`] field, where `resource` is the [`StageKind::WORK_UNITS`] field: a search sets
    /// it to stop a trial at a rung.
    fn until(&self, resource: &str) -> Option<&'static str>;
    /// [`StageKind::TRIALS`].
    fn trials(&self) -> Option<&'static str>;
    /// [`StageKind::tested`]; `None` for a configuration that cannot be read.
    fn tested(&self, config: &Settings) -> Option<Tested>;
    /// [`StageKind::reads_test`]; true for a configuration that cannot be read.
    fn reads_test(&self, config: &Settings) -> bool;
    /// [`StageKind::relative_cost`]; `None` for a configuration that cannot be read.
    fn relative_cost(&self, config: &Settings) -> Option<RelativeCost>;
    /// The JSON Schema (draft 7) of the kind's configuration.
    fn schema(&self) -> Value;
    /// Reads a configuration and fills in the defaults. `Null` stands for an absent `with:`.
    fn resolve(&self, with: Value) -> Result<Settings, ConfigProblem>;
    /// The part of a resolved configuration that is in the key: fields equal to their default and those of
    /// [`StageKind::NOT_IN_KEY`] are left out.
    fn key_config(&self, resolved: &Settings) -> Value;
    /// [`StageKind::check`].
    fn check(&self, resolved: &Settings, plan: &PlanContext) -> Planned;
    /// [`StageKind::sources`].
    fn sources(&self, resolved: &Settings, base: &Path) -> Result<Vec<Source>, ConfigProblem>;
    /// [`StageKind::run`].
    fn run(&self, resolved: &Settings, context: &Context) -> Result<Outputs, StageError>;
    /// [`StageKind::HAS_PARTS`].
    fn has_parts(&self) -> bool {
        false
    }
    /// [`StageKind::run_part`].
    fn run_part(&self, _resolved: &Settings, _context: &Context, _part: Value) -> Result<(), StageError> {
        Err(StageError::new(format!("`{}` has no parts", self.name())))
    }
    /// [`StageKind::cached_share`].
    fn cached_share(&self, resolved: &Settings, given: &Given<'_>) -> Result<Option<Share>, StageError>;
    /// The installed Python package that brings the kind, which then runs as a program of its own.
    fn package(&self) -> Option<&Package> {
        None
    }
}

/// The installed Python package of a stage kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// The package's name.
    pub name: String,
    /// The package's version.
    pub version: String,
    /// The function that runs the kind, `MODULE:FUNCTION`.
    pub call: String,
    /// The package's files, whose contents are part of the key.
    pub files: Vec<Source>,
}

/// Erases the type of a stage kind.
pub fn erase<S: StageKind>(stage: S) -> Box<dyn AnyStage> {
    Box::new(Erased(stage))
}

struct Erased<S>(S);

/// Removes values that equal their defaults, recursively in maps. The maps are structs, which always have all
/// their fields. A map with keys of the user's choice must be empty by default, since one that lacks a
/// default entry would look like the default.
fn prune(value: &Value, default: &Value) -> Option<Value> {
    if value == default {
        return None;
    }
    match (value, default) {
        (Value::Object(value), Value::Object(default)) => Some(Value::Object(
            value
                .iter()
                .filter_map(|(key, value)| {
                    let pruned = match default.get(key) {
                        Some(default) => prune(value, default),
                        None => Some(value.clone()),
                    };
                    pruned.map(|value| (key.clone(), value))
                })
                .collect(),
        )),
        _ => Some(value.clone()),
    }
}

impl<S: StageKind> AnyStage for Erased<S> {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn version(&self) -> u32 {
        S::VERSION
    }

    fn about(&self) -> &'static str {
        S::ABOUT
    }

    fn ports(&self) -> Ports {
        S::PORTS
    }

    fn nondeterministic(&self) -> Option<&'static str> {
        S::NONDETERMINISTIC
    }

    fn work_units(&self, config: &Settings) -> Option<u64> {
        let field = |path: Option<&str>| config.pointer(&format!("/{}", path?.replace('.', "/")))?.as_u64();
        field(S::UNTIL).or_else(|| field(S::WORK_UNITS))
    }

    fn until(&self, resource: &str) -> Option<&'static str> {
        S::UNTIL.filter(|_| S::WORK_UNITS == Some(resource))
    }

    fn trials(&self) -> Option<&'static str> {
        S::TRIALS
    }

    fn tested(&self, config: &Settings) -> Option<Tested> {
        self.0.tested(&*config.typed::<S::Config>().ok()?)
    }

    fn reads_test(&self, config: &Settings) -> bool {
        let typed = config.typed::<S::Config>();
        typed.map_or(true, |config| self.0.reads_test(&config))
    }

    fn relative_cost(&self, config: &Settings) -> Option<RelativeCost> {
        self.0.relative_cost(&*config.typed::<S::Config>().ok()?)
    }

    fn schema(&self) -> Value {
        SchemaSettings::draft07()
            .into_generator()
            .into_root_schema_for::<S::Config>()
            .to_value()
    }

    fn resolve(&self, with: Value) -> Result<Settings, ConfigProblem> {
        Settings::read::<S::Config>(with)
    }

    fn key_config(&self, resolved: &Settings) -> Value {
        let default = serde_json::to_value(S::Config::default()).unwrap_or_default();
        let mut pruned = prune(resolved, &default).unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        if let Value::Object(map) = &mut pruned {
            map.retain(|key, _| !S::NOT_IN_KEY.contains(&key.as_str()));
        }
        pruned
    }

    fn check(&self, resolved: &Settings, plan: &PlanContext) -> Planned {
        features::check(S::PORTS, S::FEATURES_BY_CONTRACT, plan)?;
        self.0.check(&*resolved.typed::<S::Config>()?, plan)
    }

    fn sources(&self, resolved: &Settings, base: &Path) -> Result<Vec<Source>, ConfigProblem> {
        self.0.sources(&*resolved.typed::<S::Config>()?, base)
    }

    fn run(&self, resolved: &Settings, context: &Context) -> Result<Outputs, StageError> {
        features::check_inputs(S::PORTS, S::FEATURES_BY_CONTRACT, &context.inputs)?;
        self.0.run(&*resolved.typed::<S::Config>()?, context)
    }

    fn has_parts(&self) -> bool {
        S::HAS_PARTS
    }

    fn run_part(&self, resolved: &Settings, context: &Context, part: Value) -> Result<(), StageError> {
        self.0.run_part(&*resolved.typed::<S::Config>()?, context, part)
    }

    fn cached_share(&self, resolved: &Settings, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        self.0.cached_share(&*resolved.typed::<S::Config>()?, given)
    }
}
