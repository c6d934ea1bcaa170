//! The stage kind `train/pbt`.

use super::population::{Population, Trained};
use super::settings::PbtConfig;
use crate::settings::Common;
use crate::stage::{ENV, INIT, MANY_DEVICES, OUTPUTS};
use crate::{metrics, warm_start};
use cache::ArtifactBuilder;
use serde_json::{Value, json};
use stages_core::{Context, Outputs, PlanContext, Planned, PortType, Ports, StageError, StageKind};
use stages_env::OpenOptions;
use stages_policy::kernels::bf16::Path;
use stages_policy::{Policy, Precision, policy};
use std::collections::BTreeMap;

/// The stage kind `train/pbt`.
pub struct Pbt;

impl StageKind for Pbt {
    type Config = PbtConfig;
    const NAME: &'static str = "train/pbt";
    const VERSION: u32 = 2;
    const ABOUT: &'static str =
        "population-based training: members that take over the states of better ones and explore settings";
    const NOT_IN_KEY: &'static [&'static str] = &["checkpoint_interval", "device"];
    const NONDETERMINISTIC: Option<&'static str> = MANY_DEVICES;
    const WORK_UNITS: Option<&'static str> = Some("with.total_timesteps");
    const UNTIL: Option<&'static str> = Some("until");
    const HAS_PARTS: bool = true;
    const PORTS: Ports = Ports {
        inputs: &[ENV, INIT],
        outputs: OUTPUTS,
    };

    fn check(&self, config: &PbtConfig, _: &PlanContext) -> Planned {
        config.check()?;
        Ok(Self::PORTS.provided())
    }

    fn run(&self, config: &PbtConfig, context: &Context) -> Result<Outputs, StageError> {
        let init = warm_start::policy(&context.given(), warm_start::PORT)?;
        let (population, common) = population(config, context, init.as_ref())?;
        let trained = population.train()?;
        store(config, &common, context, init.as_ref(), trained)
    }

    fn run_part(&self, config: &PbtConfig, context: &Context, part: Value) -> Result<(), StageError> {
        let init = warm_start::policy(&context.given(), warm_start::PORT)?;
        population(config, context, init.as_ref())?.0.train_part(part)
    }
}

/// The population of a stage, and the settings that its members share.
fn population<'a>(
    config: &'a PbtConfig,
    context: &'a Context,
    init: Option<&'a Policy>,
) -> Result<(Population<'a>, Common), StageError> {
    config.check()?;
    let env = context.input(ENV.name)?;
    let common = config.member(&BTreeMap::new(), 0)?.common().clone();
    let class = common.numerics_class(config.device().0);
    if class != stages_numerics::class::numerics_class() {
        context.numerics_class.get_or_init(|| class.clone());
    }
    let given = context.given();
    let first = given
        .optional(warm_start::PORT)
        .map(|input| input.digest.as_bytes().to_vec());
    let mut names = vec![
        String::from(config.trainer).into_bytes(),
        env.digest.as_bytes().to_vec(),
        first.unwrap_or_default(),
        class.into_bytes(),
    ];
    if common.rollouts.precision == Precision::Bf16 {
        names.push(Path::detect().order().as_bytes().to_vec());
    }
    let population = Population {
        config,
        context,
        env: (env.digest, &env.artifact),
        init,
        names,
    };
    Ok((population, common))
}

/// Stores the best member's policy and the population's metrics.
fn store(
    config: &PbtConfig,
    common: &Common,
    context: &Context,
    init: Option<&Policy>,
    trained: Trained,
) -> Result<Outputs, StageError> {
    let env = &context.input(ENV.name)?.artifact;
    let options = OpenOptions {
        normalise_as: init.and_then(|init| init.spec().normalisation.clone()),
        ..OpenOptions::train(1, config.seed)
    };
    let env = stages_env::open(&context.store, env, &options)?;
    let architecture = common.network.architecture(env.spec())?;
    let Trained {
        rounds,
        best,
        state,
        metrics: population,
    } = trained;
    let selected = state.selected(common.training.validation.selects_by());
    let trainer = config.trainer.name();
    let result = state.policy(trainer, env.spec(), &architecture)?;
    let told = &rounds[rounds.len() - 1][best];
    let mut policy_meta = json!({
        "kind": trainer,
        "architecture": result.architecture(),
        "parameters": result.params().len(),
        "env": result.spec().name,
        "population": { "member": best, "members": config.pop_size, "settings": told.settings },
    });
    if let Some(selected) = &selected {
        policy_meta["selected"] = json!(selected);
    }
    let mut builder = ArtifactBuilder::new(&context.store, PortType::Policy.name(), policy_meta);
    builder.bytes(policy::ENTRY, &result.save()?)?;
    let policy = builder.finish()?;
    let mut summary = metrics::summary(&state, selected.as_ref());
    summary["member"] = json!(best);
    summary["score"] = json!(told.score);
    let meta = json!({ "summary": summary, "lineage": rounds });
    let mut builder = ArtifactBuilder::new(&context.store, PortType::Metrics.name(), meta);
    // The best member's own metrics are those of the lineage whose state it has.
    builder.bytes(metrics::ENTRY, format!("{population}{}", state.metrics).as_bytes())?;
    let metrics = builder.finish()?;
    context.log(format!("member {best} of {} is the best", config.pop_size));
    Ok([("policy".to_owned(), policy), ("metrics".to_owned(), metrics)].into())
}
