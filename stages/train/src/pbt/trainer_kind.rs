//! The stage kinds with which a population can train its members.

use crate::stage::TrainSettings;
use crate::{
    A2cConfig, DqnConfig, ErlConfig, EsConfig, PpoConfig, RecurrentPpoConfig, SacConfig, Td3Config,
    TransformerPpoConfig,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stages_core::{ConfigProblem, StageKind};

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

            /// The checked settings of a member.
            pub(super) fn settings(self, with: Value) -> Result<Box<dyn TrainSettings>, ConfigProblem> {
                Ok(match self {
                    $(Self::$kind => Box::new(read::<$config>(with)?.settings()?),)*
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
    stages_core::read::read(&with).map_err(|err| ConfigProblem::new("with", err.to_string()))
}
