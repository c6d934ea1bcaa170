//! The stage kind `train/sac`.

use super::settings::SacConfig;
use crate::kind::kind;
use crate::replay::off_policy::FromReplay;
use crate::replay::settings::NOT_IN_KEY;

type Algorithm = FromReplay<super::algorithm::Sac>;

kind!(
    /// The stage kind `train/sac`.
    Sac(SacConfig, Algorithm),
    "train/sac",
    version: 2,
    "soft actor-critic: continuous actions, learned from a replay buffer",
    not_in_key: NOT_IN_KEY,
    |settings| settings.common().learning_rate.depends_on_total()
);
