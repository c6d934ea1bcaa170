//! The configuration of actions: a flat menu, several choices at once, or weights; and the limits that mask them.
//!
//! | `actions` | an action is |
//! | --- | --- |
//! | `menu` | one of: hold, close, open a strategy, (hedge) |
//! | `multi_discrete` | a choice for each of the components `strategy`, `size`, (`hedge`) and `close` |
//! | `continuous` | a weight in \[-1, 1\] for each slot, and (where actions hedge) a hedge ratio in \[0, 1\] |
//!
//! *Multi-discrete.* Choice 0 of `strategy` opens nothing; choice i opens the i-th strategy. `size` is an index of `sizes`, multiples of `sizing`. `close` is none,
//! the strategy opened first, the one with the nearest expiry, the one that has lost most since it was opened (by its marks), or all with the hedge. `hedge` (where
//! `hedge: { rule: action }`) is leave, to zero, or to the band. They are done in the order close, open, hedge. Each component has its own mask: a strategy is
//! allowed if it could be opened at some size, beside what is held or after everything is closed; a size, if some strategy could be opened at it. A
//! strategy that cannot be opened in the combination that was chosen is counted as refused, with its reason, and the rest is done.
//!
//! *Continuous.* The weight w of a slot aims at round(w n) contracts, where n is what `sizing` gives without rounding. Contracts count for the slot that they
//! were opened through, whatever slot shows them now. A weight below `no_trade` in absolute value is 0, and closes; another change of fewer than `no_trade` n
//! contracts is not traded. First all reductions are traded, the oldest lines first, then all increases, slot by slot, each under the rules of every other
//! opening. The hedge ratio h aims at -h times the options' delta in the hedge; a change within the `band` is not traded.

use super::config::OptionsConfig;
use super::fills::FillPrice;
use super::observation::slot_names;
use super::strategies::Strategies;
use crate::actions::{ActionSpace, Bounds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::ConfigProblem;

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

impl ActionKind {
    /// Returns whether it is the flat list.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
    pub(crate) fn is_menu(&self) -> bool {
        *self == Self::Menu
    }
}

/// A set of strategies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StrategySet {
    /// Those of `strategies`, or else eight common ones at the first maturity.
    #[default]
    Listed,
    /// Those of `listed`, and what trades every slot: the common strategies and ratio spreads at each maturity, calendars, and each slot alone, long and short.
    All,
}

impl StrategySet {
    /// Returns whether it is the default.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
    pub(crate) fn is_listed(&self) -> bool {
        *self == Self::Listed
    }
}

/// Limits of the portfolio, as fractions of the net asset value. An opening that would exceed one, and not reduce what exceeds it, is masked.
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

/// The choices of the component `hedge`.
pub(crate) const HEDGE_CHOICES: u32 = 3;
/// The choices of the component `close`, after none: a strategy by age, by expiry or by loss, and all.
pub(crate) const CLOSE_OLDEST: usize = 1;
pub(crate) const CLOSE_NEAREST_EXPIRY: usize = 2;
pub(crate) const CLOSE_LARGEST_LOSS: usize = 3;
pub(crate) const CLOSE_ALL: usize = 4;
/// The number of choices of the component `close`.
pub(crate) const CLOSE_CHOICES: usize = 5;

/// The action space of a configuration.
pub(crate) fn action_space(config: &OptionsConfig, strategies: &Strategies) -> ActionSpace {
    let hedge = config.hedge.is_by_action();
    match config.actions {
        ActionKind::Menu => ActionSpace::Discrete {
            names: strategies.names.clone(),
            masked: true,
        },
        ActionKind::MultiDiscrete => {
            let mut components = vec![
                ("strategy", strategies.legs.len() as u32 + 1),
                ("size", config.sizes.len() as u32),
            ];
            components.extend(hedge.then_some(("hedge", HEDGE_CHOICES)));
            components.push(("close", CLOSE_CHOICES as u32));
            let (names, choices): (Vec<&str>, Vec<u32>) = components.into_iter().unzip();
            ActionSpace::MultiDiscrete {
                names: names.into_iter().map(str::to_owned).collect(),
                choices,
                masked: true,
            }
        }
        ActionKind::Continuous => {
            let mut names = slot_names(&config.slate);
            let (mut low, mut high) = (vec![-1.0; names.len()], vec![1.0; names.len()]);
            if hedge {
                names.push("hedge_ratio".to_owned());
                low.push(0.0);
                high.push(1.0);
            }
            ActionSpace::Continuous {
                names,
                bounds: Bounds { low, high },
            }
        }
    }
}

/// Checks the settings of actions and limits.
pub(crate) fn validate(config: &OptionsConfig) -> Result<(), ConfigProblem> {
    if !config.actions.is_menu() && config.fills.price == FillPrice::NextSnapshot {
        return Err(ConfigProblem::new(
            "fills.price",
            "fills at the next snapshot are of a menu's actions alone",
        )
        .hint("remove `actions`, or take another price"));
    }
    let ascends = config.sizes.windows(2).all(|pair| pair[0] < pair[1]);
    if config.sizes.is_empty() || !ascends || !config.sizes.iter().all(|size| *size > 0.0 && size.is_finite()) {
        return Err(
            ConfigProblem::new("sizes", "expected one or more positive multiples, ascending")
                .hint("sizes: [0.5, 1, 2] are multiples of `sizing`"),
        );
    }
    if !(0.0..=1.0).contains(&config.no_trade) {
        return Err(ConfigProblem::new(
            "no_trade",
            format!("{} is not between 0 and 1", config.no_trade),
        ));
    }
    let Limits { delta, vega, margin } = config.limits;
    for (field, limit) in [("delta", delta), ("vega", vega), ("margin", margin)] {
        if let Some(limit) = limit.filter(|limit| !(*limit >= 0.0 && limit.is_finite())) {
            return Err(ConfigProblem::new(
                format!("limits.{field}"),
                format!("{limit} is not 0 or more"),
            ));
        }
    }
    Ok(())
}
