//! The stage kinds that a population can train its members by.

use super::member::{Segment, State, train};
use crate::erl::algorithm::Erl;
use crate::erl::settings::{ErlSettings, Inner};
use crate::es::settings::EsSettings;
use crate::learner::Algorithm;
use crate::ppo::algorithm::Ppo;
use crate::ppo::settings::PpoSettings;
use crate::replay::off_policy::{FromReplay, OffPolicy};
use crate::replay::settings::OffPolicySettings;
use crate::settings::Common;
use crate::{
    A2cConfig, DqnConfig, ErlConfig, EsConfig, PpoConfig, RecurrentPpoConfig, SacConfig, Td3Config,
    TransformerPpoConfig,
};
use crate::{a2c, dqn, erl, es, ppo, sac, td3};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stages_core::{ConfigProblem, StageError, StageKind};

/// A stage kind that trains one member, written with its version where it is part of a key: another version
/// trains otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum TrainerKind {
    /// `train/ppo`.
    #[default]
    Ppo,
    /// `train/recurrent_ppo`.
    RecurrentPpo,
    /// `train/transformer_ppo`.
    TransformerPpo,
    /// `train/a2c`.
    A2c,
    /// `train/sac`.
    Sac,
    /// `train/td3`.
    Td3,
    /// `train/dqn`.
    Dqn,
    /// `train/es`.
    Es,
    /// `train/erl`.
    Erl,
}

impl TrainerKind {
    const ALL: [Self; 9] = [
        Self::Ppo,
        Self::RecurrentPpo,
        Self::TransformerPpo,
        Self::A2c,
        Self::Sac,
        Self::Td3,
        Self::Dqn,
        Self::Es,
        Self::Erl,
    ];

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ppo => ppo::stage::Ppo::NAME,
            Self::RecurrentPpo => ppo::stage::RecurrentPpo::NAME,
            Self::TransformerPpo => ppo::stage::TransformerPpo::NAME,
            Self::A2c => a2c::stage::A2c::NAME,
            Self::Sac => sac::stage::Sac::NAME,
            Self::Td3 => td3::stage::Td3::NAME,
            Self::Dqn => dqn::stage::Dqn::NAME,
            Self::Es => es::stage::Es::NAME,
            Self::Erl => erl::stage::Erl::NAME,
        }
    }

    fn version(self) -> u32 {
        match self {
            Self::Ppo => ppo::stage::Ppo::VERSION,
            Self::RecurrentPpo => ppo::stage::RecurrentPpo::VERSION,
            Self::TransformerPpo => ppo::stage::TransformerPpo::VERSION,
            Self::A2c => a2c::stage::A2c::VERSION,
            Self::Sac => sac::stage::Sac::VERSION,
            Self::Td3 => td3::stage::Td3::VERSION,
            Self::Dqn => dqn::stage::Dqn::VERSION,
            Self::Es => es::stage::Es::VERSION,
            Self::Erl => erl::stage::Erl::VERSION,
        }
    }

    /// A trainer with these settings.
    ///
    /// # Errors
    /// The first mistake in them.
    pub(super) fn member(self, with: Value) -> Result<Box<dyn Member>, ConfigProblem> {
        let name = self.name();
        Ok(match self {
            Self::Ppo => ppo_member(name, read::<PpoConfig>(with)?.settings()?),
            Self::RecurrentPpo => ppo_member(name, read::<RecurrentPpoConfig>(with)?.settings()?),
            Self::TransformerPpo => ppo_member(name, read::<TransformerPpoConfig>(with)?.settings()?),
            Self::A2c => {
                let settings = read::<A2cConfig>(with)?.settings()?;
                member(name, &settings.common().clone(), move || {
                    a2c::algorithm::A2c::new(&settings)
                })
            }
            Self::Sac => off_policy(name, read::<SacConfig>(with)?.settings()?),
            Self::Td3 => off_policy(name, read::<Td3Config>(with)?.settings()?),
            Self::Dqn => off_policy(name, read::<DqnConfig>(with)?.settings()?),
            Self::Es => Box::new(read::<EsConfig>(with)?.settings()?),
            Self::Erl => Box::new(read::<ErlConfig>(with)?.settings()?),
        })
    }
}

impl From<TrainerKind> for String {
    fn from(kind: TrainerKind) -> Self {
        format!("{} v{}", kind.name(), kind.version())
    }
}

impl TryFrom<String> for TrainerKind {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let is = |kind: &Self| text == kind.name() || text == Self::Error::from(*kind);
        Self::ALL.into_iter().find(is).ok_or_else(|| {
            let names = Self::ALL.map(|kind| format!("`{}`", kind.name()));
            format!("`{text}` trains no population; expected {}", names.join(", "))
        })
    }
}

fn read<T: serde::de::DeserializeOwned>(with: Value) -> Result<T, ConfigProblem> {
    serde_json::from_value(with).map_err(|err| ConfigProblem::new("with", err.to_string()))
}

/// A member's trainer.
pub(crate) trait Member: Send + Sync {
    /// The settings that every algorithm has.
    fn common(&self) -> &Common;

    /// Trains for a segment; returns the member's state at its end.
    ///
    /// # Errors
    /// Those of training.
    fn train(&self, segment: &Segment<'_>) -> Result<State, StageError>;
}

/// A member that is trained by the algorithm that `make` makes.
struct Of<F> {
    name: &'static str,
    common: Common,
    make: F,
}

fn member<A: Algorithm>(
    name: &'static str,
    common: &Common,
    make: impl Fn() -> A + Send + Sync + 'static,
) -> Box<dyn Member> {
    let common = common.clone();
    Box::new(Of { name, common, make })
}

fn ppo_member(name: &'static str, settings: PpoSettings) -> Box<dyn Member> {
    member(name, &settings.common.clone(), move || Ppo::new(&settings))
}

fn off_policy<A: OffPolicy + Send + Sync + 'static>(
    name: &'static str,
    settings: OffPolicySettings<A>,
) -> Box<dyn Member> {
    member(name, &settings.common.clone(), move || FromReplay::new(&settings))
}

impl<A: Algorithm, F: Fn() -> A + Send + Sync> Member for Of<F> {
    fn common(&self) -> &Common {
        &self.common
    }

    fn train(&self, segment: &Segment<'_>) -> Result<State, StageError> {
        train(self.name, &self.make, segment)
    }
}

impl Member for EsSettings {
    fn common(&self) -> &Common {
        &self.common
    }

    fn train(&self, segment: &Segment<'_>) -> Result<State, StageError> {
        let options = segment.options(&self.common);
        let open = || stages_env::open(&segment.context.store, segment.env.1, &options);
        train(es::stage::Es::NAME, || es::algorithm::Es::new(self, &open), segment)
    }
}

impl Member for ErlSettings {
    fn common(&self) -> &Common {
        self.common()
    }

    fn train(&self, segment: &Segment<'_>) -> Result<State, StageError> {
        let options = segment.options(self.common());
        let open = || stages_env::open(&segment.context.store, segment.env.1, &options);
        let name = erl::stage::Erl::NAME;
        match &self.inner {
            Inner::Td3(inner) => train(name, || Erl::new(self, inner, &open), segment),
            Inner::Sac(inner) => train(name, || Erl::new(self, inner, &open), segment),
        }
    }
}
