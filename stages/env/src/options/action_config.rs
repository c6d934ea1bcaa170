//! The settings of actions, and of the limits that mask them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActionKind {
    /// One of a flat list: hold, close, or open a strategy.
    #[default]
    Menu,
    /// A strategy, its size, a hedge and what is closed, each a component of its own.
    MultiDiscrete,
    /// A weight for each slot of the slate, and a hedge ratio.
    Continuous,
}

/// A set of strategies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StrategySet {
    /// Those of `strategies`, or else eight common ones at the first maturity.
    #[default]
    Listed,
    /// Those of `listed`, and what trades every slot: the common strategies and ratio spreads at each
    /// maturity, calendars, and each slot alone, long and short.
    All,
}

/// Limits of the portfolio, as fractions of the net asset value. An opening that would exceed one, and not
/// reduce what exceeds it, is masked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// |delta| times the underlying, after the hedge that a rule makes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// |vega| per 1.00 of volatility: 1 is one per cent of the net asset value for a volatility point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vega: Option<f64>,
    /// The margin requirement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
}

impl Limits {
    /// Returns whether there are none.
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// The multiples of `sizing`, ascending.
pub(crate) fn default_sizes() -> Vec<f64> {
    vec![0.5, 1.0, 2.0]
}

/// Returns whether sizes are the default.
pub(crate) fn are_default_sizes(sizes: &Vec<f64>) -> bool {
    *sizes == default_sizes()
}

/// The default of `no_trade`.
pub(crate) const NO_TRADE: f64 = 0.1;

/// Returns whether it is the default of `no_trade`.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
pub(crate) fn is_default_no_trade(fraction: &f64) -> bool {
    *fraction == NO_TRADE
}
