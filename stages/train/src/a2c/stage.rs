//! The stage kind `train/a2c`.

use super::algorithm::A2c as Algorithm;
use super::settings::A2cConfig;
use crate::kind::kind;
use crate::settings::NOT_IN_KEY;

kind!(
    /// The stage kind `train/a2c`.
    A2c(A2cConfig, Algorithm),
    "train/a2c",
    version: 2,
    "advantage actor-critic",
    not_in_key: NOT_IN_KEY,
    |settings| settings.common().learning_rate.depends_on_total()
);
