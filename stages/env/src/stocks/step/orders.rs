//! From actions to orders: the signed shares of each symbol that a step is to trade.

use super::kernels::{Exposure, Targets, clamp_weights, targets, whole};
use super::market::Market;
use super::state::Env;
use crate::stocks::action_space::lots_of;
use crate::stocks::tables::status;

/// The meaning of the numbers that a decision has left in an environment's orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Nothing is traded.
    Hold,
    /// The numbers are target weights.
    Weights,
    /// The numbers are signed shares.
    Shares,
}

/// Puts an action of weights into the orders.
pub(super) fn from_weights(weights: &[f32], orders: &mut [f64]) -> Intent {
    for (order, weight) in orders.iter_mut().zip(weights) {
        *order = f64::from(*weight);
    }
    Intent::Weights
}

/// Puts an action of trades from -1 to 1 into the orders; 1 stands for `shares` shares.
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

/// The factors of positive and of negative weights, of which each is within `actions.largest`, that bring
/// them within the limits: their absolute sum within `gross` by one factor, then their sum within `net` by a
/// factor of the side that exceeds it.
fn limits(market: &Market, sums: Exposure) -> (f64, f64) {
    let limits = &market.config.actions;
    let factor = if sums.gross > limits.gross {
        limits.gross / sums.gross
    } else {
        1.0
    };
    let net = sums.net * factor;
    if net.abs() <= limits.net {
        return (factor, factor);
    }
    let gross = sums.gross * factor;
    let (long, short) = (0.5 * (gross + net), 0.5 * (gross - net));
    match net > 0.0 {
        true => (factor * ((limits.net + short) / long), factor),
        false => (factor, factor * ((limits.net + long) / short)),
    }
}

/// Turns target weights into signed shares, at the marks that the decision sees; a symbol that does not trade
/// keeps its position.
pub(super) fn weights_to_shares(market: &Market, env: &mut Env<'_>) {
    let actions = &market.config.actions;
    let least = if actions.short { -actions.largest } else { 0.0 };
    let mut sums = Exposure::default();
    clamp_weights(market.instructions, env.orders, least, actions.largest, &mut sums);
    let (long, short) = limits(market, sums);
    let t = env.account.t as usize;
    let nav = env.account.nav.max(0.0);
    let by = Targets {
        long,
        short,
        nav,
        least: actions.no_trade * nav,
        lot: f64::from(market.config.fills.lot),
    };
    let (marks, flags) = (market.tables.marks(t), market.tables.status(t));
    targets(market.instructions, env.orders, env.positions, marks, flags, &by);
}

/// Keeps orders of signed shares to whole lots, and to what may be traded: nothing of a symbol that does not
/// trade, nothing below 0 where positions are not short, and no more than the participation in the volume
/// allows.
pub(super) fn restrict(market: &Market, env: &mut Env<'_>) {
    let t = env.account.t as usize;
    let flags = market.tables.status(t);
    let short = market.config.actions.short;
    let (mut refused, mut reduced) = (0, 0);
    for ((order, held), flags) in env.orders.iter_mut().zip(&*env.positions).zip(flags) {
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
        let lot = f64::from(market.config.fills.lot);
        for (order, volume) in env.orders.iter_mut().zip(volumes) {
            let limit = most * volume;
            if order.abs() > limit {
                *order = whole(order.signum() * limit, lot);
                reduced += 1;
            }
        }
    }
    env.account.refused += refused;
    env.account.reduced += reduced;
}
