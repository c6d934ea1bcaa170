//! The stage kind `train/sac`.

use super::algorithm::Sac as Algorithm;
use super::settings::SacConfig;
use crate::kind::kind;
use crate::replay::settings::NOT_IN_KEY;

kind!(
    /// The stage kind `train/sac`.
    Sac(SacConfig, Algorithm),
    "train/sac",
    "soft actor-critic: continuous actions, learned from a replay buffer",
    not_in_key: NOT_IN_KEY,
    |settings| settings.common().learning_rate.depends_on_total()
);
