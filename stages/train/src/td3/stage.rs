//! The stage kind `train/td3`.

use super::settings::Td3Config;
use crate::kind::kind;
use crate::replay::off_policy::FromReplay;
use crate::replay::settings::NOT_IN_KEY;

type Algorithm = FromReplay<super::algorithm::Td3>;

kind!(
    /// The stage kind `train/td3`.
    Td3(Td3Config, Algorithm),
    "train/td3",
    version: 2,
    "twin delayed deep deterministic policy gradient: continuous actions, learned from a replay buffer",
    not_in_key: NOT_IN_KEY,
    |settings| settings.common().learning_rate.depends_on_total()
);
