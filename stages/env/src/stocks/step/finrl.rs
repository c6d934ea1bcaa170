//! The step of FinRL's StockTradingEnv (`finrl/meta/env_stock_trading/env_stocktrading.py` at commit
//! 220f9e49), to the number.
//!
//! - Actions are multiplied by `hmax` in single precision and cut to whole shares.
//! - Sales come first, from the largest on, then purchases, from the largest on; each purchase takes what
//!   cash is left. Of equal ones, sales are in the order of symbols and purchases in reverse: NumPy's
//!   `argsort` of at most 16 numbers (of more, NumPy's order of equal ones depends on its build).
//! - While the risk indicator is at or above the threshold, everything is sold and nothing bought. The
//!   indicator of an episode's first date counts as 0.
//! - The reward is the change of cash and stocks at the closes, times `reward_scaling`.
//! - After the last date one more step does nothing, gives the last reward once more, and terminates.
//!
//! Sums are made in FinRL's order, so that results agree to the last digits that it prints.

use super::market::Market;
use super::orders::Intent;
use super::state::{Account, Env};
use crate::portfolio::Outcome;
use crate::stocks::config::MAX_SYMBOLS;
use crate::stocks::tables::status;

/// The bits of the number of a symbol.
const SYMBOL_BITS: u32 = MAX_SYMBOLS.trailing_zeros();

/// One step.
pub(super) fn step(market: &Market, env: &mut Env<'_>, intent: Intent) -> Outcome {
    let t = env.account.t as usize;
    if env.account.t >= env.account.last {
        return Outcome {
            reward: env.account.reward as f32,
            terminated: true,
            truncated: false,
        };
    }
    let begin = total(env, market.tables.marks(t));
    trade(market, env, intent);
    env.account.t += 1;
    let t = t + 1;
    let settings = &market.config.finrl;
    if settings.turbulence_threshold.is_some() {
        env.account.risk = market.tables.panel.risk[t];
    }
    let end = total(env, market.tables.marks(t));
    market.mark(env.account, env.positions, 0.0);
    env.account.nav = end;
    env.account.reward = (end - begin) * settings.reward_scaling;
    Outcome {
        reward: env.account.reward as f32,
        terminated: false,
        truncated: false,
    }
}

/// The trades of a step, at the closes of its date.
pub(super) fn trade(market: &Market, env: &mut Env<'_>, intent: Intent) {
    let t = env.account.t as usize;
    let settings = &market.config.finrl;
    let marks = market.tables.marks(t);
    match intent {
        Intent::Hold => env.orders.fill(0.0),
        Intent::Shares | Intent::Scores => {}
        Intent::Weights => {
            let nav = env.account.nav;
            for ((order, held), mark) in env.orders.iter_mut().zip(&*env.positions).zip(marks) {
                let weight = if order.is_nan() { 0.0 } else { order.clamp(0.0, 1.0) };
                *order = (weight * nav / (mark * (1.0 + settings.buy_cost_pct))).trunc() - held;
            }
        }
    }
    let exits = settings
        .turbulence_threshold
        .is_some_and(|threshold| env.account.risk >= threshold);
    if exits {
        env.orders.fill(-f64::from(settings.hmax));
    }
    // Orders and symbols as one number each: sorted, from the largest sale to the largest purchase, equal
    // ones in the order of symbols.
    let keys: &mut [i64] = bytemuck::cast_slice_mut(env.orders);
    for (i, key) in keys.iter_mut().enumerate() {
        *key = (f64::from_bits(key.cast_unsigned()) as i64) << SYMBOL_BITS | i as i64;
    }
    keys.sort_unstable();
    let split = |key: i64| ((key & (MAX_SYMBOLS as i64 - 1)) as usize, (key >> SYMBOL_BITS) as f64);
    let flags = market.tables.status(t);
    let (account, shares) = (&mut *env.account, &mut *env.positions);
    for (i, order) in keys.iter().map(|&key| split(key)).take_while(|(_, order)| *order < 0.0) {
        let trades = exits || flags[i] & status::TRADES != 0;
        let held = shares[i];
        if trades && held > 0.0 {
            let sold = if exits { held } else { held.min(-order) };
            sell(account, settings.sell_cost_pct, marks[i], sold);
            shares[i] = held - sold;
        }
    }
    for (i, order) in keys
        .iter()
        .rev()
        .map(|&key| split(key))
        .take_while(|(_, order)| *order > 0.0)
    {
        if flags[i] & status::TRADES != 0 {
            shares[i] += buy(account, settings.buy_cost_pct, marks[i], order);
        }
    }
}

/// Cash and stocks: NumPy's products, summed one after the other.
fn total(env: &Env<'_>, marks: &[f64]) -> f64 {
    env.account.cash
        + env
            .positions
            .iter()
            .zip(marks)
            .fold(0.0, |sum, (held, mark)| sum + mark * held)
}

fn sell(account: &mut Account, cost: f64, price: f64, shares: f64) {
    account.cash += price * shares * (1.0 - cost);
    account.spread_cost += price * shares * cost;
    account.traded += price * shares;
    account.trades += 1;
}

/// The shares bought: what cash pays of an order. FinRL counts a purchase of none as a trade.
fn buy(account: &mut Account, cost: f64, price: f64, order: f64) -> f64 {
    let shares = floor_div(account.cash, price * (1.0 + cost)).min(order);
    account.cash -= price * shares * (1.0 + cost);
    account.spread_cost += price * shares * cost;
    account.traded += price * shares;
    account.trades += 1;
    shares
}

/// Python's `a // b` of positive numbers.
fn floor_div(a: f64, b: f64) -> f64 {
    let quotient = a / b;
    let near = (quotient + 0.5).floor();
    if (quotient - near).abs() > 1e-9 * near.max(1.0) {
        return quotient.floor();
    }
    let whole = (a - a % b) / b;
    let floor = whole.floor();
    if whole - floor > 0.5 { floor + 1.0 } else { floor }
}
