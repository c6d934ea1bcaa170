//! The stage kinds `train/ppo`, `train/recurrent_ppo` and `train/transformer_ppo`.

use crate::settings::{PpoConfig, RecurrentPpoConfig, Settings, TransformerPpoConfig};
use crate::trainer::train_with;
use crate::{checkpoint, device, metrics, warm_start};
use cache::{ArtifactBuilder, MemoKey};
use serde::Serialize;
use serde_json::{Value, json};
use stages_core::{
    ConfigProblem, Context, Given, InputPort, OutputPort, Outputs, PlanContext, PortType, Ports, Provided, Share,
    StageError, StageKind, memo_key,
};
use stages_env::{ActionSpace, OpenOptions};
use stages_policy::kernels::bf16::Path;
use stages_policy::{Device, Precision, policy};
use std::collections::BTreeMap;

const PORTS: Ports = Ports {
    inputs: &[
        InputPort {
            name: "env",
            ty: PortType::Env,
            optional: false,
            list: false,
            doc: "what to learn; its training dates",
        },
        InputPort {
            name: warm_start::PORT,
            ty: PortType::Policy,
            optional: true,
            list: false,
            doc: "a policy to begin with: its weights, and what its observations are normalised by",
        },
    ],
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
const NOT_IN_KEY: &[&str] = &["checkpoint_interval", "device", "log_interval"];

/// Why a training need not give the same bytes again, in a program that was built for several devices.
const MANY_DEVICES: Option<&str> = if Device::Cuda.is_built_in() || Device::Metal.is_built_in() {
    Some("`device: auto` may choose another device, which gives other bytes")
} else {
    None
};

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

fn scratch_key<S: StageKind>(
    config: &S::Config,
    settings: &Settings,
    given: &Given<'_>,
    device: Device,
) -> Result<MemoKey, StageError> {
    let recipe = cache::canonical_json(&scratch_recipe(config, settings)?);
    let (env, class) = (given.input("env")?.digest, device.class());
    let mut parts: Vec<&[u8]> = vec![recipe.as_bytes(), env.as_bytes(), class.as_bytes()];
    if settings.precision == Precision::Bf16 {
        // Checkpoints of one order of additions are not gone on from in another.
        parts.push(Path::detect().order().as_bytes());
    }
    parts.extend(
        given
            .optional(warm_start::PORT)
            .map(|init| init.digest.as_bytes().as_slice()),
    );
    Ok(memo_key(&format!("{} checkpoint v{}", S::NAME, S::VERSION), &parts))
}

/// The step of the checkpoint that a training on `device` would go on from; 0 if there is none.
fn begun<S: StageKind>(
    config: &S::Config,
    settings: &Settings,
    given: &Given<'_>,
    device: Device,
) -> Result<u64, StageError> {
    let scratch = given
        .store
        .scratch_path(scratch_key::<S>(config, settings, given, device)?);
    let step = checkpoint::step(&scratch).filter(|&step| step <= settings.last_step());
    Ok(step.unwrap_or(0))
}

/// How many steps the checkpoint holds that a training would go on from.
fn share<S: StageKind>(config: &S::Config, settings: &Settings, given: &Given<'_>) -> Result<Share, StageError> {
    let mut done = 0;
    for &device in settings.device.candidates() {
        done = done.max(begun::<S>(config, settings, given, device)?);
    }
    let total = settings.total_timesteps;
    Ok(Share::new("steps", done.min(total), total))
}

fn run<S: StageKind>(config: &S::Config, settings: &Settings, context: &Context) -> Result<Outputs, StageError> {
    let input = context.input("env")?;
    let init = warm_start::policy(&context.given())?;
    // A policy to begin with sees what it saw, in its own normalisation.
    let seen = init.as_ref().and_then(|init| init.spec().normalisation.clone());
    let options = OpenOptions {
        normalise_as: seen,
        ..OpenOptions::train(settings.n_envs, settings.seed)
    };
    let env = stages_env::open(&context.store, &input.artifact, &options)?;
    if let ActionSpace::MultiDiscrete { .. } = env.spec().action_space {
        return Err(StageError::new(format!(
            "`{}` does not support multi-discrete actions, which `{}` takes",
            S::NAME,
            env.spec().name
        )));
    }
    let given = context.given();
    let goes_on = |device| !context.fresh && begun::<S>(config, settings, &given, device).is_ok_and(|step| step > 0);
    let (device, model) = device::choose(settings, env.spec(), goes_on, context)?;
    if device != Device::Cpu {
        context.numerics_class.get_or_init(|| device.class());
    }
    let scratch = context
        .store
        .scratch(scratch_key::<S>(config, settings, &given, device)?)?;
    let trained = train_with(S::NAME, settings, env, model, init.as_ref(), &scratch, context)?;

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
    const VERSION: u32 = 2;
    const ABOUT: &'static str = "proximal policy optimisation";
    const NOT_IN_KEY: &'static [&'static str] = NOT_IN_KEY;
    const NONDETERMINISTIC: Option<&'static str> = MANY_DEVICES;
    const PORTS: Ports = PORTS;

    fn check(&self, config: &PpoConfig, _: &PlanContext) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        config.settings()?;
        Ok(provided())
    }

    fn run(&self, config: &PpoConfig, context: &Context) -> Result<Outputs, StageError> {
        run::<Self>(config, &config.settings()?, context)
    }

    fn cached_share(&self, config: &PpoConfig, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        share::<Self>(config, &config.settings()?, given).map(Some)
    }
}

/// The stage kind `train/recurrent_ppo`.
pub struct RecurrentPpo;

impl StageKind for RecurrentPpo {
    type Config = RecurrentPpoConfig;
    const NAME: &'static str = "train/recurrent_ppo";
    const VERSION: u32 = 2;
    const ABOUT: &'static str = "proximal policy optimisation with an LSTM";
    const NOT_IN_KEY: &'static [&'static str] = NOT_IN_KEY;
    const NONDETERMINISTIC: Option<&'static str> = MANY_DEVICES;
    const PORTS: Ports = PORTS;

    fn check(&self, config: &RecurrentPpoConfig, _: &PlanContext) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        config.settings()?;
        Ok(provided())
    }

    fn run(&self, config: &RecurrentPpoConfig, context: &Context) -> Result<Outputs, StageError> {
        run::<Self>(config, &config.settings()?, context)
    }

    fn cached_share(&self, config: &RecurrentPpoConfig, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        share::<Self>(config, &config.settings()?, given).map(Some)
    }
}

/// The stage kind `train/transformer_ppo`.
pub struct TransformerPpo;

impl StageKind for TransformerPpo {
    type Config = TransformerPpoConfig;
    const NAME: &'static str = "train/transformer_ppo";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "proximal policy optimisation with a gated transformer over a window of steps";
    const NOT_IN_KEY: &'static [&'static str] = NOT_IN_KEY;
    const NONDETERMINISTIC: Option<&'static str> = MANY_DEVICES;
    const PORTS: Ports = PORTS;

    fn check(
        &self,
        config: &TransformerPpoConfig,
        _: &PlanContext,
    ) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        config.settings()?;
        Ok(provided())
    }

    fn run(&self, config: &TransformerPpoConfig, context: &Context) -> Result<Outputs, StageError> {
        run::<Self>(config, &config.settings()?, context)
    }

    fn cached_share(&self, config: &TransformerPpoConfig, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        share::<Self>(config, &config.settings()?, given).map(Some)
    }
}
