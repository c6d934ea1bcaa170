//! The stage kind `train/imitate`.

use super::algorithm::Imitation;
use super::settings::{ImitateConfig, ImitationSettings};
use crate::settings::NOT_IN_KEY;
use crate::stage::{ENV, INIT, MANY_DEVICES, OUTPUTS, Training, provided};
use crate::warm_start;
use stages_core::{
    ConfigProblem, Context, Given, InputPort, Outputs, PlanContext, PortType, Ports, Provided, Share,
    StageError, StageKind,
};
use std::collections::BTreeMap;

const TEACHER: InputPort = InputPort {
    name: "teacher",
    ty: PortType::Policy,
    optional: false,
    list: false,
    doc: "the policy to imitate",
};

/// The stage kind `train/imitate`.
pub struct Imitate;

fn training<'a>(config: &'a ImitateConfig, settings: &'a ImitationSettings) -> Training<'a, Imitate> {
    let schedules = [settings.common.learning_rate, settings.teacher_share];
    Training {
        config,
        common: &settings.common,
        depends_on_total: schedules.iter().any(|schedule| schedule.depends_on_total()),
    }
}

impl StageKind for Imitate {
    type Config = ImitateConfig;
    const NAME: &'static str = "train/imitate";
    const VERSION: u32 = 2;
    const ABOUT: &'static str = "imitation of a given policy: behaviour cloning and DAgger";
    const NOT_IN_KEY: &'static [&'static str] = NOT_IN_KEY;
    const NONDETERMINISTIC: Option<&'static str> = MANY_DEVICES;
    const WORK_UNITS: Option<&'static str> = Some("total_timesteps");
    const PORTS: Ports = Ports {
        inputs: &[ENV, INIT, TEACHER],
        outputs: OUTPUTS,
    };

    fn check(
        &self,
        config: &ImitateConfig,
        _: &PlanContext,
    ) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        config.settings()?;
        Ok(provided(&Self::PORTS))
    }

    fn run(&self, config: &ImitateConfig, context: &Context) -> Result<Outputs, StageError> {
        let settings = config.settings()?;
        let given = context.given();
        let init = warm_start::policy(&given, warm_start::PORT)?;
        given.input(TEACHER.name)?;
        let teacher = warm_start::policy(&given, TEACHER.name)?
            .ok_or_else(|| StageError::new(format!("`{}` needs a policy", TEACHER.name)))?;
        // Student and teacher see the same observations.
        let normalise_as = teacher.spec().normalisation.clone();
        training(config, &settings).run(context, init.as_ref(), normalise_as, || {
            Imitation::new(&settings, &teacher)
        })
    }

    fn cached_share(&self, config: &ImitateConfig, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        training(config, &config.settings()?).share(given)
    }
}
