//! The stage kinds with which a population can train its members.

use super::member::{Segment, State, train};
use crate::kind::{Means, TrainSettings, Visitor};
use crate::learner::Algorithm;
use crate::settings::Common;
use crate::{
    A2cConfig, DqnConfig, ErlConfig, EsConfig, PpoConfig, RecurrentPpoConfig, SacConfig, Td3Config,
    TransformerPpoConfig,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stages_core::{ConfigProblem, StageError, StageKind};

macro_rules! trainers {
    ($($(#[$meta:meta])* $kind:ident: $config:ident,)*) => {
        /// A stage kind that trains one member, written with its version where it is part of a key: another
        /// version trains otherwise.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        #[schemars(with = "String")]
        pub enum TrainerKind {
            $(
                #[doc = concat!("That of [`crate::", stringify!($kind), "`].")]
                $(#[$meta])*
                $kind,
            )*
        }

        impl TrainerKind {
            const ALL: &[Self] = &[$(Self::$kind),*];

            /// The stage kind's name.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$kind => crate::$kind::NAME,)* }
            }

            fn version(self) -> u32 {
                match self { $(Self::$kind => crate::$kind::VERSION,)* }
            }

            /// A trainer with these settings.
            pub(super) fn member(self, with: Value) -> Result<Box<dyn Member>, ConfigProblem> {
                let name = self.name();
                Ok(match self {
                    $(Self::$kind => Box::new(Of { name, settings: read::<$config>(with)?.settings()? }),)*
                })
            }
        }
    };
}

trainers! {
    #[default]
    Ppo: PpoConfig,
    RecurrentPpo: RecurrentPpoConfig,
    TransformerPpo: TransformerPpoConfig,
    A2c: A2cConfig,
    Sac: SacConfig,
    Td3: Td3Config,
    Dqn: DqnConfig,
    Es: EsConfig,
    Erl: ErlConfig,
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
        Self::ALL.iter().copied().find(is).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|kind| format!("`{}`", kind.name())).collect();
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
    fn train(&self, segment: &Segment<'_>) -> Result<State, StageError>;
}

/// A member with the checked settings of its stage kind.
struct Of<S> {
    name: &'static str,
    settings: S,
}

impl<S: TrainSettings + Send + Sync> Member for Of<S> {
    fn common(&self) -> &Common {
        self.settings.common()
    }

    fn train(&self, segment: &Segment<'_>) -> Result<State, StageError> {
        let options = segment.options(self.common());
        let means = Means {
            open: &|| stages_env::open(&segment.context.store, segment.env.1, &options),
            teacher: None,
        };
        let name = self.name;
        self.settings.algorithm(&means, Train { name, segment })
    }
}

struct Train<'a> {
    name: &'static str,
    segment: &'a Segment<'a>,
}

impl Visitor for Train<'_> {
    type Result = State;

    fn visit<A: Algorithm>(self, make: impl Fn() -> A) -> Result<State, StageError> {
        train(self.name, make, self.segment)
    }
}
