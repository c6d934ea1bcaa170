//! The action space of `env/stocks`.

use super::config::{Rules, StockActionKind, StocksConfig};
use crate::actions::{ActionSpace, Bounds};
use crate::hedge::HEDGE_CHOICES;

/// The choice that holds.
pub(crate) const HOLD: u32 = 0;

/// The space of actions on these symbols, and on the hedge where actions hedge: a ratio from 0 to 1, or the
/// choices leave, to zero and to the band.
pub(crate) fn action_space(config: &StocksConfig, symbols: &[String]) -> ActionSpace {
    let hedge = config.hedge.is_by_action();
    let names = |of_hedge: &str| {
        let of_hedge = hedge.then(|| of_hedge.to_owned());
        symbols.iter().cloned().chain(of_hedge).collect::<Vec<_>>()
    };
    let n = symbols.len();
    let continuous = |low: f32, high: f32| {
        let names = names("hedge_ratio");
        let (mut low, mut high) = (vec![low; n], vec![high; n]);
        low.resize(names.len(), 0.0);
        high.resize(names.len(), 1.0);
        ActionSpace::Continuous {
            bounds: Bounds { low, high },
            names,
        }
    };
    // Weights beyond the largest are held to it: a policy that is scaled to its range learns within it.
    let largest = config.actions.largest.min(1.0) as f32;
    match (config.rules, config.actions.kind) {
        (Rules::Finrl, _) | (_, StockActionKind::Shares | StockActionKind::Scores) => continuous(-1.0, 1.0),
        (_, StockActionKind::Weights) => {
            continuous(if config.actions.short { -largest } else { 0.0 }, largest)
        }
        (_, StockActionKind::Choices) => {
            let mut choices = vec![1 + 2 * config.actions.lots.len() as u32; n];
            choices.extend(hedge.then_some(HEDGE_CHOICES));
            ActionSpace::MultiDiscrete {
                names: names("hedge"),
                choices,
                masked: true,
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_bounded_by_the_largest() {
        let bounds = |actions: serde_json::Value| {
            let config = serde_json::from_value(serde_json::json!({ "actions": actions })).unwrap();
            match action_space(&config, &["A".to_owned()]) {
                ActionSpace::Continuous { bounds, .. } => (bounds.low[0], bounds.high[0]),
                other => panic!("{other:?}"),
            }
        };
        let of = |largest: f64, short: bool| {
            bounds(serde_json::json!({ "kind": "weights", "largest": largest, "short": short }))
        };
        assert_eq!(of(0.25, false), (0.0, 0.25));
        assert_eq!(of(0.25, true), (-0.25, 0.25));
        assert_eq!(of(3.0, false), (0.0, 1.0));
        assert_eq!(bounds(serde_json::json!({ "kind": "shares" })), (-1.0, 1.0));
    }
}
