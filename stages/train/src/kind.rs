//! The stage kinds that train one policy, and what each algorithm's checked settings tell of it.

use crate::a2c::algorithm::A2c as A2cAlgorithm;
use crate::a2c::settings::{A2cConfig, A2cSettings};
use crate::dqn::settings::DqnConfig;
use crate::erl::algorithm::Erl as ErlAlgorithm;
use crate::erl::settings::{ErlConfig, ErlSettings, Inner};
use crate::es::algorithm::Es as EsAlgorithm;
use crate::es::settings::{EsConfig, EsSettings};
use crate::imitate::algorithm::Imitation;
use crate::imitate::settings::{ImitateConfig, ImitationSettings};
use crate::learner::Algorithm;
use crate::ppo::algorithm::Ppo as PpoAlgorithm;
use crate::ppo::settings::{PpoConfig, PpoSettings, RecurrentPpoConfig, TransformerPpoConfig};
use crate::replay::off_policy::{FromReplay, OffPolicy};
use crate::replay::settings::OffPolicySettings;
use crate::sac::settings::SacConfig;
use crate::settings::{Common, NOT_IN_KEY};
use crate::stage::{ENV, INIT, MANY_DEVICES, Means, OUTPUTS, TEACHER, TrainSettings, Training};
use crate::td3::settings::Td3Config;
use stages_core::{
    Context, Given, InputPort, Outputs, PlanContext, Planned, Ports, Share, StageError, StageKind,
};

impl TrainSettings for PpoSettings {
    fn common(&self) -> &Common {
        &self.common
    }

    fn depends_on_total(&self) -> bool {
        let schedules = [
            Some(self.common.training.learning_rate),
            Some(self.ppo.clip_range),
            self.ppo.clip_range_vf,
        ];
        schedules.iter().flatten().any(|schedule| schedule.depends_on_total())
    }

    fn algorithm<'a>(&'a self, _: &Means<'a>) -> Result<Box<dyn Algorithm + 'a>, StageError> {
        Ok(Box::new(PpoAlgorithm::new(self)))
    }
}

impl TrainSettings for A2cSettings {
    fn common(&self) -> &Common {
        &self.rollout.common
    }

    fn algorithm<'a>(&'a self, _: &Means<'a>) -> Result<Box<dyn Algorithm + 'a>, StageError> {
        Ok(Box::new(A2cAlgorithm::new(self)))
    }
}

impl<A: OffPolicy> TrainSettings for OffPolicySettings<A> {
    fn common(&self) -> &Common {
        &self.common
    }

    fn depends_on_total(&self) -> bool {
        self.common.training.learning_rate.depends_on_total() || self.own.depends_on_total()
    }

    fn algorithm<'a>(&'a self, _: &Means<'a>) -> Result<Box<dyn Algorithm + 'a>, StageError> {
        Ok(Box::new(FromReplay::new(self, self.common.training.n_envs)))
    }
}

impl TrainSettings for EsSettings {
    fn common(&self) -> &Common {
        &self.common
    }

    fn depends_on_total(&self) -> bool {
        self.common.training.learning_rate.depends_on_total() || self.std_schedule.depends_on_total()
    }

    fn algorithm<'a>(&'a self, means: &Means<'a>) -> Result<Box<dyn Algorithm + 'a>, StageError> {
        Ok(Box::new(EsAlgorithm::new(self, means.open)))
    }
}

impl TrainSettings for ErlSettings {
    fn common(&self) -> &Common {
        match &self.inner {
            Inner::Td3(inner) => &inner.common,
            Inner::Sac(inner) => &inner.common,
        }
    }

    fn algorithm<'a>(&'a self, means: &Means<'a>) -> Result<Box<dyn Algorithm + 'a>, StageError> {
        match &self.inner {
            Inner::Td3(inner) => Ok(Box::new(ErlAlgorithm::new(self, inner, means.open))),
            Inner::Sac(inner) => Ok(Box::new(ErlAlgorithm::new(self, inner, means.open))),
        }
    }
}

impl TrainSettings for ImitationSettings {
    fn common(&self) -> &Common {
        &self.common
    }

    fn depends_on_total(&self) -> bool {
        self.common.training.learning_rate.depends_on_total() || self.teacher_share.depends_on_total()
    }

    fn algorithm<'a>(&'a self, means: &Means<'a>) -> Result<Box<dyn Algorithm + 'a>, StageError> {
        let (teacher, store) = means
            .teacher
            .ok_or_else(|| StageError::new(format!("`{}` needs a policy", TEACHER.name)))?;
        Ok(Box::new(Imitation::new(self, teacher, store)?))
    }
}

/// Declares stage kinds by configuration and checked settings.
macro_rules! kinds {
    ($(
        $kind:ident($config:ty, $inputs:expr, $nondeterministic:expr):
            $name:literal, version $version:literal, $about:literal;
    )*) => {$(
        #[doc = concat!("The stage kind `", $name, "`.")]
        pub struct $kind;

        impl StageKind for $kind {
            type Config = $config;
            const NAME: &'static str = $name;
            const VERSION: u32 = $version;
            const ABOUT: &'static str = $about;
            const NOT_IN_KEY: &'static [&'static str] = NOT_IN_KEY;
            const NONDETERMINISTIC: Option<&'static str> = $nondeterministic;
            const WORK_UNITS: Option<&'static str> = Some("total_timesteps");
            const UNTIL: Option<&'static str> = Some("until");
            const PORTS: Ports = Ports {
                inputs: $inputs,
                outputs: OUTPUTS,
            };

            fn check(&self, config: &$config, _: &PlanContext) -> Planned {
                config.settings()?;
                Ok(Self::PORTS.provided())
            }

            fn run(&self, config: &$config, context: &Context) -> Result<Outputs, StageError> {
                Training::<Self>::new(config, &config.settings()?).run(context)
            }

            fn cached_share(
                &self,
                config: &$config,
                given: &Given<'_>,
            ) -> Result<Option<Share>, StageError> {
                Training::<Self>::new(config, &config.settings()?).share(given)
            }
        }
    )*};
}

const INPUTS: &[InputPort] = &[ENV, INIT];
const STUDENT: &[InputPort] = &[ENV, INIT, TEACHER];

kinds! {
    Ppo(PpoConfig, INPUTS, MANY_DEVICES): "train/ppo", version 6, "proximal policy optimisation";
    RecurrentPpo(RecurrentPpoConfig, INPUTS, MANY_DEVICES): "train/recurrent_ppo", version 6,
        "proximal policy optimisation with an LSTM";
    TransformerPpo(TransformerPpoConfig, INPUTS, MANY_DEVICES): "train/transformer_ppo", version 5,
        "proximal policy optimisation with a gated transformer over a window of steps";
    A2c(A2cConfig, INPUTS, MANY_DEVICES): "train/a2c", version 4, "advantage actor-critic";
    Sac(SacConfig, INPUTS, MANY_DEVICES): "train/sac", version 3,
        "soft actor-critic: continuous actions, learned from a replay buffer";
    Td3(Td3Config, INPUTS, MANY_DEVICES): "train/td3", version 3,
        "twin delayed deep deterministic policy gradient: continuous actions, learned from a replay buffer";
    Dqn(DqnConfig, INPUTS, MANY_DEVICES): "train/dqn", version 3,
        "deep Q-learning: one of several choices, learned from a replay buffer";
    Es(EsConfig, INPUTS, None): "train/es", version 3,
        "evolution strategies: OpenAI-ES, PEPG, augmented random search, CMA-ES";
    Erl(ErlConfig, INPUTS, None): "train/erl", version 4,
        "evolutionary reinforcement learning: a population of actors beside SAC or TD3, one replay buffer";
    Imitate(ImitateConfig, STUDENT, MANY_DEVICES): "train/imitate", version 4,
        "imitation of a given policy: behaviour cloning and DAgger";
}
