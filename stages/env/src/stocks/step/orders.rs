//! From actions to orders: the signed shares of each symbol that a step is to trade.

use super::market::Market;
use super::state::EnvState;
use crate::stocks::action_space::lots_of;
use crate::stocks::tables::status;

/// The meaning of the numbers that a decision has left in an environment's orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    /// Nothing is traded.
    Hold,
    /// They are target weights.
    Weights,
    /// They are signed shares.
    Shares,
}

/// Puts an action of weights into the orders.
pub(super) fn from_weights(weights: &[f32], orders: &mut [f64]) -> Intent {
    for (order, weight) in orders.iter_mut().zip(weights) {
        *order = f64::from(*weight);
    }
    Intent::Weights
}

/// Puts an action of trades from -1 to 1 into the orders, of at most `shares` each.
pub(super) fn from_trades(trades: &[f32], shares: u32, orders: &mut [f64]) -> Intent {
    for (order, trade) in orders.iter_mut().zip(trades) {
        // Not a number: no trade at all.
        *order = match trade.is_nan() {
            true => 0.0,
            false => f64::from((trade.clamp(-1.0, 1.0) * shares as f32).trunc()),
        };
    }
    Intent::Shares
}

/// Puts an action of choices into the orders, in lots of `shares`.
pub(super) fn from_choices(choices: &[u32], lots: &[u32], shares: u32, orders: &mut [f64]) -> Intent {
    for (order, choice) in orders.iter_mut().zip(choices) {
        *order = lots_of(*choice, lots) * f64::from(shares);
    }
    Intent::Shares
}

/// Brings weights within the limits, in this order: each within `largest` (and not below 0 where positions are not short), their absolute sum within `gross` by one
/// factor, their sum within `net` by a factor of the side that exceeds it. Not a number counts as 0.
pub(super) fn limit_weights(market: &Market, weights: &mut [f64]) {
    let limits = &market.config.actions;
    let least = if limits.short { -limits.largest } else { 0.0 };
    let mut gross = 0.0;
    for weight in weights.iter_mut() {
        *weight = if weight.is_nan() {
            0.0
        } else {
            weight.clamp(least, limits.largest)
        };
        gross += weight.abs();
    }
    if gross > limits.gross {
        let factor = limits.gross / gross;
        weights.iter_mut().for_each(|weight| *weight *= factor);
    }
    if !limits.short {
        if limits.net < limits.gross {
            let net: f64 = weights.iter().sum();
            if net > limits.net {
                let factor = limits.net / net;
                weights.iter_mut().for_each(|weight| *weight *= factor);
            }
        }
        return;
    }
    let (long, short) = weights.iter().fold((0.0, 0.0), |(long, short), weight| {
        (long + weight.max(0.0), short - weight.min(0.0))
    });
    let net: f64 = long - short;
    if net.abs() > limits.net {
        let (long, short) = match net > 0.0 {
            true => ((limits.net + short) / long, 1.0),
            false => (1.0, (limits.net + long) / short),
        };
        for weight in weights.iter_mut() {
            *weight *= if *weight > 0.0 { long } else { short };
        }
    }
}

/// Turns target weights into signed shares, at the marks that the decision sees; a symbol that does not trade keeps its position.
pub(super) fn weights_to_shares(market: &Market, env: &mut EnvState) {
    limit_weights(market, env.orders);
    let t = env.account.t as usize;
    let (marks, flags) = (market.tables.marks(t), market.tables.status(t));
    let nav = env.account.nav.max(0.0);
    let least = market.config.actions.no_trade * nav;
    for (((order, held), mark), flags) in env.orders.iter_mut().zip(&*env.shares).zip(marks).zip(flags) {
        if flags & status::TRADES == 0 {
            *order = 0.0;
            continue;
        }
        let target = market.whole(*order * nav / mark);
        let trade = target - held;
        *order = if trade.abs() * mark < least { 0.0 } else { trade };
    }
}

/// Keeps orders of signed shares to whole lots, and to what may be traded: nothing of a symbol that does not trade, nothing below 0 where positions are not short,
/// and no more than the participation in the volume allows.
pub(super) fn restrict(market: &Market, env: &mut EnvState) {
    let t = env.account.t as usize;
    let flags = market.tables.status(t);
    let short = market.config.actions.short;
    let (mut refused, mut reduced) = (0, 0);
    for ((order, held), flags) in env.orders.iter_mut().zip(&*env.shares).zip(flags) {
        if *order == 0.0 {
            continue;
        }
        if flags & status::TRADES == 0 {
            *order = 0.0;
            refused += 1;
        } else if !short && *order < -held {
            *order = -held;
        }
    }
    if let Some(most) = market.config.fills.participation {
        let (volumes, _) = market.tables.liquidity(t);
        for (order, volume) in env.orders.iter_mut().zip(volumes) {
            let limit = most * volume;
            if order.abs() > limit {
                *order = market.whole(order.signum() * limit);
                reduced += 1;
            }
        }
    }
    env.account.refused += refused;
    env.account.reduced += reduced;
}
