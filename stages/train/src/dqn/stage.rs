//! The stage kind `train/dqn`.

use super::settings::DqnConfig;
use crate::kind::kind;
use crate::replay::off_policy::FromReplay;
use crate::replay::settings::NOT_IN_KEY;

type Algorithm = FromReplay<super::algorithm::Dqn>;

kind!(
    /// The stage kind `train/dqn`.
    Dqn(DqnConfig, Algorithm),
    "train/dqn",
    version: 2,
    "deep Q-learning: one of several choices, learned from a replay buffer",
    not_in_key: NOT_IN_KEY,
    |settings| settings.own.depends_on_total(settings.common())
);
