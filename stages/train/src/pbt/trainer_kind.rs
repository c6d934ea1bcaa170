//! The stage kinds that a population can train its members by.

use super::member::{Segment, train};
use crate::ppo::algorithm::Ppo;
use crate::settings::Common;
use crate::{PpoConfig, RecurrentPpoConfig, TransformerPpoConfig, ppo};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stages_core::{ConfigProblem, StageError, StageKind};

/// A stage kind that trains one member, written with its version where it is part of a key: another version trains otherwise.
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
}

impl TrainerKind {
    const ALL: [Self; 3] = [Self::Ppo, Self::RecurrentPpo, Self::TransformerPpo];

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ppo => ppo::stage::Ppo::NAME,
            Self::RecurrentPpo => ppo::stage::RecurrentPpo::NAME,
            Self::TransformerPpo => ppo::stage::TransformerPpo::NAME,
        }
    }

    fn version(self) -> u32 {
        match self {
            Self::Ppo => ppo::stage::Ppo::VERSION,
            Self::RecurrentPpo => ppo::stage::RecurrentPpo::VERSION,
            Self::TransformerPpo => ppo::stage::TransformerPpo::VERSION,
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

    /// Trains for a segment; returns the train state at its end.
    ///
    /// # Errors
    /// Those of training.
    fn train(&self, segment: &Segment<'_>) -> Result<Vec<u8>, StageError>;
}

/// A member that is trained by PPO.
struct PpoMember {
    name: &'static str,
    settings: ppo::settings::PpoSettings,
}

fn ppo_member(name: &'static str, settings: ppo::settings::PpoSettings) -> Box<dyn Member> {
    Box::new(PpoMember { name, settings })
}

impl Member for PpoMember {
    fn common(&self) -> &Common {
        &self.settings.common
    }

    fn train(&self, segment: &Segment<'_>) -> Result<Vec<u8>, StageError> {
        train(self.name, || Ppo::new(&self.settings), segment)
    }
}
