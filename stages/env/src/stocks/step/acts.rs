//! The orders that actions make.

use super::hedge::HedgeAct;
use super::market::Market;
use super::orders::{Intent, from_choices, from_trades, put};
use crate::actions::Actions;
use crate::hedge::HedgeOrder;
use crate::stocks::config::{Rules, StockActionKind};

/// Puts an action into the orders of an environment. The last component of an action is that of the hedge,
/// where actions hedge.
pub(super) fn decide(market: &Market, action: Actions<'_>, orders: &mut [f64]) -> (Intent, HedgeAct) {
    let (config, n) = (&market.config, orders.len());
    let actions = &config.actions;
    let hedge = match action {
        Actions::Continuous(values) if config.hedge.is_by_action() => HedgeAct::Ratio(values[n]),
        Actions::MultiDiscrete(choices) if config.hedge.is_by_action() => {
            HedgeAct::Order(HedgeOrder::from_choice(choices[n]))
        }
        _ => HedgeAct::Order(config.hedge.terms().order()),
    };
    let intent = match (action, config.rules, actions.kind) {
        (Actions::Continuous(trades), Rules::Finrl, _) => from_trades(trades, config.finrl.hmax, orders),
        (Actions::Continuous(weights), _, StockActionKind::Weights) => put(weights, orders, Intent::Weights),
        (Actions::Continuous(scores), _, StockActionKind::Scores) => put(scores, orders, Intent::Scores),
        (Actions::Continuous(trades), ..) => from_trades(trades, actions.shares, orders),
        (Actions::MultiDiscrete(choices), ..) => from_choices(choices, &actions.lots, actions.shares, orders),
        (Actions::Discrete(_), ..) => Intent::Hold,
    };
    (intent, hedge)
}
