//! The stage kind `train/erl`.

use super::algorithm::Erl as Trainer;
use super::settings::{ErlConfig, ErlSettings, Inner};
use crate::replay::settings::NOT_IN_KEY;
use crate::stage::{ENV, INIT, OUTPUTS, Training, provided};
use crate::warm_start;
use stages_core::{
    ConfigProblem, Context, Given, Outputs, PlanContext, Ports, Provided, Share, StageError, StageKind,
};
use stages_env::OpenOptions;
use std::collections::BTreeMap;

/// The stage kind `train/erl`.
pub struct Erl;

fn training<'a>(config: &'a ErlConfig, settings: &'a ErlSettings) -> Training<'a, Erl> {
    Training {
        config,
        common: settings.common(),
        depends_on_total: settings.common().learning_rate.depends_on_total(),
    }
}

impl StageKind for Erl {
    type Config = ErlConfig;
    const NAME: &'static str = "train/erl";
    const VERSION: u32 = 3;
    const ABOUT: &'static str =
        "evolutionary reinforcement learning: a population of actors beside SAC or TD3, one replay buffer";
    const NOT_IN_KEY: &'static [&'static str] = NOT_IN_KEY;
    const WORK_UNITS: Option<&'static str> = Some("total_timesteps");
    const PORTS: Ports = Ports {
        inputs: &[ENV, INIT],
        outputs: OUTPUTS,
    };

    fn check(
        &self,
        config: &ErlConfig,
        _: &PlanContext,
    ) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        config.settings()?;
        Ok(provided(&Self::PORTS))
    }

    fn run(&self, config: &ErlConfig, context: &Context) -> Result<Outputs, StageError> {
        let settings = config.settings()?;
        let given = context.given();
        let init = warm_start::policy(&given, warm_start::PORT)?;
        // A policy to begin with sees observations in the normalisation that it was trained with.
        let normalise_as = init.as_ref().and_then(|init| init.spec().normalisation.clone());
        let env = &given.input(ENV.name)?.artifact;
        let common = settings.common();
        let options = OpenOptions {
            normalise_as: normalise_as.clone(),
            // Each thread opens its own.
            processes: Some(1),
            ..OpenOptions::train(common.n_envs, common.seed)
        };
        let open = || stages_env::open(&context.store, env, &options);
        let (training, init) = (training(config, &settings), init.as_ref());
        match &settings.inner {
            Inner::Td3(inner) => {
                training.run(context, init, normalise_as, || Trainer::new(&settings, inner, &open))
            }
            Inner::Sac(inner) => {
                training.run(context, init, normalise_as, || Trainer::new(&settings, inner, &open))
            }
        }
    }

    fn cached_share(&self, config: &ErlConfig, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        training(config, &config.settings()?).share(given)
    }
}
