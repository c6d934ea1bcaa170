//! From actions to orders: the signed shares of each symbol that a step is to trade.

use super::kernels::{Exposure, ROUNDING, Targets, clamp_weights, targets, whole};
use super::market::Market;
use super::state::Env;
use crate::stocks::action_space::lots_of;
use crate::stocks::config::MAX_SYMBOLS;
use crate::stocks::tables::status;

/// The meaning of the numbers that a decision has left in an environment's orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Nothing is traded.
    Hold,
    /// The numbers are target weights.
    Weights,
    /// The numbers are scores.
    Scores,
    /// The numbers are signed shares.
    Shares,
}

/// Puts an action of weights or scores into the orders, as they are.
pub(super) fn put(action: &[f32], orders: &mut [f64], intent: Intent) -> Intent {
    for (order, value) in orders.iter_mut().zip(action) {
        *order = f64::from(*value);
    }
    intent
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

/// A set of symbols.
struct Symbols([u64; MAX_SYMBOLS / 64]);

impl Symbols {
    fn has(&self, i: usize) -> bool {
        self.0[i / 64] >> (i % 64) & 1 == 1
    }

    fn toggle(&mut self, i: usize) {
        self.0[i / 64] ^= 1 << (i % 64);
    }
}

/// Turns scores into target weights: `largest` for each of the `gross / largest` symbols that are held, 0 for
/// the others.
///
/// Free places go to the highest scores. Then, as long as the best symbol that is not held has a score that
/// exceeds the worst holding's by more than `gap`, it takes its place. A symbol that does not trade is not
/// bought or sold. Of equal scores the first symbol's is bought first; a score that is not a number is the
/// lowest, and never bought.
pub(super) fn scores_to_weights(market: &Market, env: &mut Env<'_>) {
    let actions = &market.config.actions;
    let flags = market.tables.status(env.account.t as usize);
    let places = (actions.gross / actions.largest * (1.0 + ROUNDING)) as usize;
    let scores = &mut *env.orders;
    let (mut held, mut count) = (Symbols([0; MAX_SYMBOLS / 64]), 0);
    for (i, (score, shares)) in scores.iter_mut().zip(&*env.positions).enumerate() {
        if score.is_nan() {
            *score = f64::NEG_INFINITY;
        }
        if *shares > 0.0 {
            held.toggle(i);
            count += 1;
        }
    }
    loop {
        let (mut best, mut worst) = ((f64::NEG_INFINITY, None), (f64::INFINITY, None));
        for (i, (&score, flags)) in scores.iter().zip(flags).enumerate() {
            if flags & status::TRADES == 0 {
                continue;
            }
            match held.has(i) {
                true if score <= worst.0 => worst = (score, Some(i)),
                false if score > best.0 => best = (score, Some(i)),
                _ => {}
            }
        }
        match (best, worst) {
            ((_, Some(bought)), _) if count < places => {
                held.toggle(bought);
                count += 1;
            }
            (_, (_, Some(sold))) if count > places => {
                held.toggle(sold);
                count -= 1;
            }
            ((high, Some(bought)), (low, Some(sold))) if count == places && high - low > actions.gap => {
                held.toggle(bought);
                held.toggle(sold);
            }
            _ => break,
        }
    }
    for (i, weight) in scores.iter_mut().enumerate() {
        *weight = if held.has(i) { actions.largest } else { 0.0 };
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
