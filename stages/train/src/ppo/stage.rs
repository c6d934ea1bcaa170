//! The stage kinds `train/ppo`, `train/recurrent_ppo` and `train/transformer_ppo`.

use super::algorithm::Ppo as Algorithm;
use super::settings::{PpoConfig, RecurrentPpoConfig, TransformerPpoConfig};
use crate::kind::kind;
use crate::settings::NOT_IN_KEY;

kind!(
    /// The stage kind `train/ppo`.
    Ppo(PpoConfig, Algorithm),
    "train/ppo",
    version: 4,
    "proximal policy optimisation",
    not_in_key: NOT_IN_KEY,
    |settings| settings.depends_on_total()
);
kind!(
    /// The stage kind `train/recurrent_ppo`.
    RecurrentPpo(RecurrentPpoConfig, Algorithm),
    "train/recurrent_ppo",
    version: 4,
    "proximal policy optimisation with an LSTM",
    not_in_key: NOT_IN_KEY,
    |settings| settings.depends_on_total()
);
kind!(
    /// The stage kind `train/transformer_ppo`.
    TransformerPpo(TransformerPpoConfig, Algorithm),
    "train/transformer_ppo",
    version: 3,
    "proximal policy optimisation with a gated transformer over a window of steps",
    not_in_key: NOT_IN_KEY,
    |settings| settings.depends_on_total()
);
