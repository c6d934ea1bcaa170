//! The stage kind `train/es`.

use super::algorithm::Es as Algorithm;
use super::settings::{EsConfig, EsSettings};
use crate::settings::NOT_IN_KEY;
use crate::stage::{ENV, INIT, OUTPUTS, Training, provided};
use crate::warm_start;
use stages_core::{
    ConfigProblem, Context, Given, Outputs, PlanContext, Ports, Provided, Share, StageError, StageKind,
};
use stages_env::OpenOptions;
use std::collections::BTreeMap;

/// The stage kind `train/es`.
pub struct Es;

fn training<'a>(config: &'a EsConfig, settings: &'a EsSettings) -> Training<'a, Es> {
    let schedules = [settings.common.learning_rate, settings.std_schedule];
    Training {
        config,
        common: &settings.common,
        depends_on_total: schedules.iter().any(|schedule| schedule.depends_on_total()),
    }
}

impl StageKind for Es {
    type Config = EsConfig;
    const NAME: &'static str = "train/es";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "evolution strategies: OpenAI-ES, PEPG, augmented random search, CMA-ES";
    const NOT_IN_KEY: &'static [&'static str] = NOT_IN_KEY;
    const WORK_UNITS: Option<&'static str> = Some("total_timesteps");
    const PORTS: Ports = Ports {
        inputs: &[ENV, INIT],
        outputs: OUTPUTS,
    };

    fn check(&self, config: &EsConfig, _: &PlanContext) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        config.settings()?;
        Ok(provided(&Self::PORTS))
    }

    fn run(&self, config: &EsConfig, context: &Context) -> Result<Outputs, StageError> {
        let settings = config.settings()?;
        let given = context.given();
        let init = warm_start::policy(&given, warm_start::PORT)?;
        // A policy to begin with sees observations in the normalisation that it was trained with.
        let normalise_as = init.as_ref().and_then(|init| init.spec().normalisation.clone());
        let env = &given.input(ENV.name)?.artifact;
        let options = OpenOptions {
            normalise_as: normalise_as.clone(),
            // Each thread opens its own.
            processes: Some(1),
            ..OpenOptions::train(settings.common.n_envs, settings.common.seed)
        };
        let open = || stages_env::open(&context.store, env, &options);
        training(config, &settings).run(context, init.as_ref(), normalise_as, || {
            Algorithm::new(&settings, &open)
        })
    }

    fn cached_share(&self, config: &EsConfig, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        training(config, &config.settings()?).share(given)
    }
}
