//! The stage kinds that train one policy, and what each algorithm's checked settings tell of it.

use crate::a2c::algorithm::A2c as A2cAlgorithm;
use crate::a2c::settings::{A2cConfig, A2cSettings};
use crate::dqn::settings::{DqnConfig, DqnSettings};
use crate::erl::algorithm::Erl as ErlAlgorithm;
use crate::erl::settings::{ErlConfig, ErlSettings, Inner};
use crate::es::algorithm::Es as EsAlgorithm;
use crate::es::settings::{EsConfig, EsSettings};
use crate::evaluator::Opener;
use crate::imitate::algorithm::Imitation;
use crate::imitate::settings::{ImitateConfig, ImitationSettings};
use crate::learner::Algorithm;
use crate::ppo::algorithm::Ppo as PpoAlgorithm;
use crate::ppo::settings::{PpoConfig, PpoSettings, RecurrentPpoConfig, TransformerPpoConfig};
use crate::replay::off_policy::{FromReplay, OffPolicy};
use crate::replay::settings::OffPolicySettings;
use crate::sac::settings::{SacConfig, SacSettings};
use crate::settings::{Common, NOT_IN_KEY};
use crate::stage::{ENV, INIT, MANY_DEVICES, OUTPUTS, TEACHER, Training};
use crate::td3::settings::{Td3Config, Td3Settings};
use crate::{replay, warm_start};
use stages_core::{
    Context, Given, InputPort, Outputs, PlanContext, Planned, Ports, Share, StageError, StageKind,
};
use stages_env::{Normalisation, OpenOptions};
use stages_policy::Policy;

/// The checked settings of an algorithm.
pub(crate) trait TrainSettings {
    const INPUTS: &'static [InputPort] = &[ENV, INIT];
    const NOT_IN_KEY: &'static [&'static str] = NOT_IN_KEY;
    const NONDETERMINISTIC: Option<&'static str> = MANY_DEVICES;

    /// The settings that every algorithm has.
    fn common(&self) -> &Common;

    /// True if the steps of a training depend on its length.
    fn depends_on_total(&self) -> bool {
        self.common().training.learning_rate.depends_on_total()
    }

    /// Passes a maker of the algorithm to `visitor`.
    fn algorithm<V: Visitor>(&self, means: &Means<'_>, visitor: V) -> Result<V::Result, StageError>;
}

/// Resources of algorithms that need more than their settings.
pub(crate) struct Means<'a> {
    /// Opens environments.
    pub open: &'a Opener<'a>,
    /// The policy to imitate.
    pub teacher: Option<&'a Policy>,
}

/// A visitor of a maker of an algorithm.
pub(crate) trait Visitor {
    type Result;

    /// Takes a function that makes the algorithm.
    fn visit<A: Algorithm>(self, make: impl Fn() -> A) -> Result<Self::Result, StageError>;
}

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

    fn algorithm<V: Visitor>(&self, _: &Means<'_>, visitor: V) -> Result<V::Result, StageError> {
        visitor.visit(|| PpoAlgorithm::new(self))
    }
}

impl TrainSettings for A2cSettings {
    fn common(&self) -> &Common {
        &self.rollout.common
    }

    fn algorithm<V: Visitor>(&self, _: &Means<'_>, visitor: V) -> Result<V::Result, StageError> {
        visitor.visit(|| A2cAlgorithm::new(self))
    }
}

impl<A: OffPolicy> TrainSettings for OffPolicySettings<A> {
    const NOT_IN_KEY: &'static [&'static str] = replay::settings::NOT_IN_KEY;

    fn common(&self) -> &Common {
        &self.common
    }

    fn depends_on_total(&self) -> bool {
        self.common.training.learning_rate.depends_on_total() || self.own.depends_on_total()
    }

    fn algorithm<V: Visitor>(&self, _: &Means<'_>, visitor: V) -> Result<V::Result, StageError> {
        visitor.visit(|| FromReplay::new(self))
    }
}

impl TrainSettings for EsSettings {
    const NONDETERMINISTIC: Option<&'static str> = None;

    fn common(&self) -> &Common {
        &self.common
    }

    fn depends_on_total(&self) -> bool {
        self.common.training.learning_rate.depends_on_total() || self.std_schedule.depends_on_total()
    }

    fn algorithm<V: Visitor>(&self, means: &Means<'_>, visitor: V) -> Result<V::Result, StageError> {
        visitor.visit(|| EsAlgorithm::new(self, means.open))
    }
}

impl TrainSettings for ErlSettings {
    const NOT_IN_KEY: &'static [&'static str] = replay::settings::NOT_IN_KEY;
    const NONDETERMINISTIC: Option<&'static str> = None;

    fn common(&self) -> &Common {
        match &self.inner {
            Inner::Td3(inner) => &inner.common,
            Inner::Sac(inner) => &inner.common,
        }
    }

    fn algorithm<V: Visitor>(&self, means: &Means<'_>, visitor: V) -> Result<V::Result, StageError> {
        match &self.inner {
            Inner::Td3(inner) => visitor.visit(|| ErlAlgorithm::new(self, inner, means.open)),
            Inner::Sac(inner) => visitor.visit(|| ErlAlgorithm::new(self, inner, means.open)),
        }
    }
}

impl TrainSettings for ImitationSettings {
    const INPUTS: &'static [InputPort] = &[ENV, INIT, TEACHER];

    fn common(&self) -> &Common {
        &self.common
    }

    fn depends_on_total(&self) -> bool {
        self.common.training.learning_rate.depends_on_total() || self.teacher_share.depends_on_total()
    }

    fn algorithm<V: Visitor>(&self, means: &Means<'_>, visitor: V) -> Result<V::Result, StageError> {
        let teacher = means
            .teacher
            .ok_or_else(|| StageError::new(format!("`{}` needs a policy", TEACHER.name)))?;
        visitor.visit(|| Imitation::new(self, teacher))
    }
}

/// Runs the training of a stage kind.
fn run<S: StageKind>(
    config: &S::Config,
    settings: &impl TrainSettings,
    context: &Context,
) -> Result<Outputs, StageError> {
    let (given, common) = (context.given(), settings.common());
    let init = warm_start::policy(&given, INIT.name)?;
    let teacher = warm_start::policy(&given, TEACHER.name)?;
    // A policy to begin with sees observations in the normalisation that it was trained with; student and
    // teacher see the same.
    let sees_as = teacher.as_ref().or(init.as_ref());
    let normalise_as = sees_as.and_then(|policy| policy.spec().normalisation.clone());
    let env = &given.input(ENV.name)?.artifact;
    let options = OpenOptions {
        normalise_as: normalise_as.clone(),
        // Each thread opens its own.
        processes: Some(1),
        ..OpenOptions::train(common.training.n_envs, common.training.seed)
    };
    let means = Means {
        open: &|| stages_env::open(&context.store, env, &options),
        teacher: teacher.as_ref(),
    };
    let run = Run {
        training: training::<S>(config, settings),
        context,
        init: init.as_ref(),
        normalise_as,
    };
    settings.algorithm(&means, run)
}

fn training<'a, S: StageKind>(config: &'a S::Config, settings: &'a impl TrainSettings) -> Training<'a, S> {
    Training {
        config,
        common: settings.common(),
        depends_on_total: settings.depends_on_total(),
    }
}

struct Run<'a, S: StageKind> {
    training: Training<'a, S>,
    context: &'a Context,
    init: Option<&'a Policy>,
    normalise_as: Option<Normalisation>,
}

impl<S: StageKind> Visitor for Run<'_, S> {
    type Result = Outputs;

    fn visit<A: Algorithm>(self, make: impl Fn() -> A) -> Result<Outputs, StageError> {
        self.training.run(self.context, self.init, self.normalise_as, make)
    }
}

/// Declares stage kinds by configuration and checked settings.
macro_rules! kinds {
    ($(
        $kind:ident($config:ty, $settings:ty): $name:literal, version $version:literal, $about:literal;
    )*) => {$(
        #[doc = concat!("The stage kind `", $name, "`.")]
        pub struct $kind;

        impl StageKind for $kind {
            type Config = $config;
            const NAME: &'static str = $name;
            const VERSION: u32 = $version;
            const ABOUT: &'static str = $about;
            const NOT_IN_KEY: &'static [&'static str] = <$settings>::NOT_IN_KEY;
            const NONDETERMINISTIC: Option<&'static str> = <$settings>::NONDETERMINISTIC;
            const WORK_UNITS: Option<&'static str> = Some("total_timesteps");
            const PORTS: Ports = Ports {
                inputs: <$settings>::INPUTS,
                outputs: OUTPUTS,
            };

            fn check(&self, config: &$config, _: &PlanContext) -> Planned {
                config.settings()?;
                Ok(Self::PORTS.provided())
            }

            fn run(&self, config: &$config, context: &Context) -> Result<Outputs, StageError> {
                run::<Self>(config, &config.settings()?, context)
            }

            fn cached_share(
                &self,
                config: &$config,
                given: &Given<'_>,
            ) -> Result<Option<Share>, StageError> {
                training::<Self>(config, &config.settings()?).share(given)
            }
        }
    )*};
}

kinds! {
    Ppo(PpoConfig, PpoSettings): "train/ppo", version 4, "proximal policy optimisation";
    RecurrentPpo(RecurrentPpoConfig, PpoSettings): "train/recurrent_ppo", version 4,
        "proximal policy optimisation with an LSTM";
    TransformerPpo(TransformerPpoConfig, PpoSettings): "train/transformer_ppo", version 3,
        "proximal policy optimisation with a gated transformer over a window of steps";
    A2c(A2cConfig, A2cSettings): "train/a2c", version 2, "advantage actor-critic";
    Sac(SacConfig, SacSettings): "train/sac", version 2,
        "soft actor-critic: continuous actions, learned from a replay buffer";
    Td3(Td3Config, Td3Settings): "train/td3", version 2,
        "twin delayed deep deterministic policy gradient: continuous actions, learned from a replay buffer";
    Dqn(DqnConfig, DqnSettings): "train/dqn", version 2,
        "deep Q-learning: one of several choices, learned from a replay buffer";
    Es(EsConfig, EsSettings): "train/es", version 1,
        "evolution strategies: OpenAI-ES, PEPG, augmented random search, CMA-ES";
    Erl(ErlConfig, ErlSettings): "train/erl", version 3,
        "evolutionary reinforcement learning: a population of actors beside SAC or TD3, one replay buffer";
    Imitate(ImitateConfig, ImitationSettings): "train/imitate", version 2,
        "imitation of a given policy: behaviour cloning and DAgger";
}
