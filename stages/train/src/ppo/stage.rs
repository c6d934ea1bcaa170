//! The stage kinds `train/ppo`, `train/recurrent_ppo` and `train/transformer_ppo`.

use super::algorithm::Ppo as Algorithm;
use super::settings::{PpoConfig, PpoSettings, RecurrentPpoConfig, TransformerPpoConfig};
use crate::settings::NOT_IN_KEY;
use crate::stage::{ENV, INIT, MANY_DEVICES, OUTPUTS, Training, provided};
use crate::warm_start;
use stages_core::{
    ConfigProblem, Context, Given, Outputs, PlanContext, Ports, Provided, Share, StageError, StageKind,
};
use std::collections::BTreeMap;

const PORTS: Ports = Ports {
    inputs: &[ENV, INIT],
    outputs: OUTPUTS,
};

fn training<'a, S: StageKind>(config: &'a S::Config, settings: &'a PpoSettings) -> Training<'a, S> {
    let schedules = [
        Some(settings.common.learning_rate),
        Some(settings.clip_range),
        settings.clip_range_vf,
    ];
    Training {
        config,
        common: &settings.common,
        depends_on_total: schedules.iter().flatten().any(|schedule| schedule.depends_on_total()),
    }
}

fn run<S: StageKind>(
    config: &S::Config,
    settings: &PpoSettings,
    context: &Context,
) -> Result<Outputs, StageError> {
    let init = warm_start::policy(&context.given(), warm_start::PORT)?;
    // A policy to begin with sees observations in the normalisation that it was trained with.
    let normalise_as = init.as_ref().and_then(|init| init.spec().normalisation.clone());
    training::<S>(config, settings).run(context, init.as_ref(), normalise_as, || Algorithm::new(settings))
}

macro_rules! kind {
    ($(#[$meta:meta])* $kind:ident($config:ty), $name:literal, version: $version:literal, $about:literal) => {
        $(#[$meta])*
        pub struct $kind;

        impl StageKind for $kind {
            type Config = $config;
            const NAME: &'static str = $name;
            const VERSION: u32 = $version;
            const ABOUT: &'static str = $about;
            const NOT_IN_KEY: &'static [&'static str] = NOT_IN_KEY;
            const NONDETERMINISTIC: Option<&'static str> = MANY_DEVICES;
            const WORK_UNITS: Option<&'static str> = Some("total_timesteps");
            const PORTS: Ports = PORTS;

            fn check(&self, config: &$config, _: &PlanContext) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
                config.settings()?;
                Ok(provided(&PORTS))
            }

            fn run(&self, config: &$config, context: &Context) -> Result<Outputs, StageError> {
                run::<Self>(config, &config.settings()?, context)
            }

            fn cached_share(&self, config: &$config, given: &Given<'_>) -> Result<Option<Share>, StageError> {
                training::<Self>(config, &config.settings()?).share(given)
            }
        }
    };
}

kind!(
    /// The stage kind `train/ppo`.
    Ppo(PpoConfig), "train/ppo", version: 4, "proximal policy optimisation"
);
kind!(
    /// The stage kind `train/recurrent_ppo`.
    RecurrentPpo(RecurrentPpoConfig), "train/recurrent_ppo", version: 4, "proximal policy optimisation with \
        an LSTM"
);
kind!(
    /// The stage kind `train/transformer_ppo`.
    TransformerPpo(TransformerPpoConfig),
    "train/transformer_ppo",
    version: 3,
    "proximal policy optimisation with a gated transformer over a window of steps"
);
