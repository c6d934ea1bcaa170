//! The space of actions.

use super::config::{Rules, StockActionKind, StocksConfig};
use crate::actions::{ActionSpace, Bounds};

/// The choice that holds.
pub(crate) const HOLD: u32 = 0;

/// The space of actions on these symbols.
pub(crate) fn action_space(config: &StocksConfig, symbols: &[String]) -> ActionSpace {
    let names = symbols.to_vec();
    let n = names.len();
    let continuous = |low: f32| ActionSpace::Continuous {
        names: symbols.to_vec(),
        bounds: Bounds {
            low: vec![low; n],
            high: vec![1.0; n],
        },
    };
    match (config.rules, config.actions.kind) {
        (Rules::Finrl, _) | (_, StockActionKind::Shares) => continuous(-1.0),
        (_, StockActionKind::Weights) => continuous(if config.actions.short { -1.0 } else { 0.0 }),
        (_, StockActionKind::Choices) => ActionSpace::MultiDiscrete {
            names,
            choices: vec![1 + 2 * config.actions.lots.len() as u32; n],
            masked: true,
        },
    }
}

/// The signed lots of a choice: 0 to hold, then purchases, then sales, each in the order of `lots`.
pub(crate) fn lots_of(choice: u32, lots: &[u32]) -> f64 {
    let k = lots.len() as u32;
    match choice {
        HOLD => 0.0,
        buy if buy <= k => f64::from(lots[(buy - 1) as usize]),
        sell if sell <= 2 * k => -f64::from(lots[(sell - 1 - k) as usize]),
        _ => 0.0,
    }
}
