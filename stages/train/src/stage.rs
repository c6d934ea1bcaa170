//! The stage kinds `train/ppo` and `train/recurrent_ppo`.

use crate::metrics;
use crate::settings::{PpoConfig, RecurrentPpoConfig, Settings};
use crate::trainer::train;
use cache::ArtifactBuilder;
use serde::Serialize;
use serde_json::{Value, json};
use stages_core::{
    ConfigProblem, Context, InputPort, OutputPort, Outputs, PlanContext, PortType, Ports, Provided, StageError,
    StageKind, context::memo_key, numerics,
};
use stages_env::OpenOptions;
use stages_policy::policy;
use std::collections::BTreeMap;

const PORTS: Ports = Ports {
    inputs: &[InputPort {
        name: "env",
        ty: PortType::Env,
        optional: false,
        list: false,
        doc: "what to learn; its training dates",
    }],
    outputs: &[
        OutputPort {
            name: "policy",
            ty: PortType::Policy,
            doc: "the trained policy",
        },
        OutputPort {
            name: "metrics",
            ty: PortType::Metrics,
            doc: "returns, losses and learning rate of every update",
        },
    ],
};

/// Settings that cannot change the result.
const NOT_IN_KEY: &[&str] = &["checkpoint_interval", "log_interval"];

fn provided() -> BTreeMap<String, Provided> {
    PORTS
        .outputs
        .iter()
        .map(|port| (port.name.to_owned(), Provided::unknown(port.ty)))
        .collect()
}

/// What the checkpoints of a training depend on: as its action, less its length where no schedule depends on it, so that a
/// longer training goes on from a shorter one.
fn scratch_recipe(config: &impl Serialize, settings: &Settings) -> Result<Value, StageError> {
    let mut recipe = serde_json::to_value(config).map_err(|err| StageError::new(err.to_string()))?;
    if let Value::Object(fields) = &mut recipe {
        for field in NOT_IN_KEY {
            fields.remove(*field);
        }
        if !settings.depends_on_total() {
            fields.remove("total_timesteps");
        }
    }
    Ok(recipe)
}

fn run<S: StageKind>(config: &S::Config, settings: &Settings, context: &Context) -> Result<Outputs, StageError> {
    let input = context.input("env")?;
    let env = stages_env::open(
        &context.store,
        &input.artifact,
        &OpenOptions::train(settings.n_envs, settings.seed),
    )?;
    let recipe = cache::canonical_json(&scratch_recipe(config, settings)?);
    let scratch = context.store.scratch(memo_key(
        &format!("{} checkpoint v{}", S::NAME, S::VERSION),
        &[recipe.as_bytes(), input.digest.as_bytes(), numerics::class().as_bytes()],
    ))?;
    let trained = train(S::NAME, settings, env, &scratch, context)?;

    let policy_meta = json!({
        "kind": S::NAME,
        "architecture": trained.policy.architecture(),
        "parameters": trained.policy.params().len(),
        "env": trained.policy.spec().name,
    });
    let mut policy = ArtifactBuilder::new(&context.store, PortType::Policy.name(), policy_meta);
    policy.bytes(policy::ENTRY, &trained.policy.save()?)?;
    let metrics_meta = json!({ "summary": trained.summary });
    let mut metrics = ArtifactBuilder::new(&context.store, PortType::Metrics.name(), metrics_meta);
    metrics.bytes(metrics::ENTRY, trained.metrics.as_bytes())?;
    Ok([
        ("policy".to_owned(), policy.finish()?),
        ("metrics".to_owned(), metrics.finish()?),
    ]
    .into())
}

/// The stage kind `train/ppo`.
pub struct Ppo;

impl StageKind for Ppo {
    type Config = PpoConfig;
    const NAME: &'static str = "train/ppo";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "proximal policy optimisation";
    const NOT_IN_KEY: &'static [&'static str] = NOT_IN_KEY;
    const PORTS: Ports = PORTS;

    fn check(&self, config: &PpoConfig, _: &PlanContext) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        config.settings()?;
        Ok(provided())
    }

    fn run(&self, config: &PpoConfig, context: &Context) -> Result<Outputs, StageError> {
        run::<Self>(config, &config.settings()?, context)
    }
}

/// The stage kind `train/recurrent_ppo`.
pub struct RecurrentPpo;

impl StageKind for RecurrentPpo {
    type Config = RecurrentPpoConfig;
    const NAME: &'static str = "train/recurrent_ppo";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "proximal policy optimisation with an LSTM";
    const NOT_IN_KEY: &'static [&'static str] = NOT_IN_KEY;
    const PORTS: Ports = PORTS;

    fn check(&self, config: &RecurrentPpoConfig, _: &PlanContext) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        config.settings()?;
        Ok(provided())
    }

    fn run(&self, config: &RecurrentPpoConfig, context: &Context) -> Result<Outputs, StageError> {
        run::<Self>(config, &config.settings()?, context)
    }
}
