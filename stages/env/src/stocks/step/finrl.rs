//! The step of FinRL's StockTradingEnv (`finrl/meta/env_stock_trading/env_stocktrading.py` at commit 220f9e49), to the number.
//!
//! - Actions are multiplied by `hmax` in single precision and cut to whole shares.
//! - Sales come first, from the largest on, then purchases, from the largest on; each purchase takes what cash is left. Of equal ones, sales are in the order of symbols and
//!   purchases in reverse: NumPy's `argsort` of at most 16 numbers (of more, NumPy's order of equal ones depends on its build).
//! - While the risk indicator is at or above the threshold, everything is sold and nothing bought. The indicator of an episode's first date counts as 0.
//! - The reward is the change of cash and stocks at the closes, times `reward_scaling`.
//! - After the last date one more step does nothing, gives the last reward once more, and terminates.
//!
//! Sums are made in FinRL's order, so that results agree to the last digits that it prints.

use super::market::Market;
use super::orders::Intent;
use super::state::EnvState;
use super::stepper::Outcome;
use crate::stocks::tables::status;

/// One step.
pub(super) fn step(market: &Market, env: &mut EnvState, intent: Intent) -> Outcome {
    let t = env.account.t as usize;
    if env.account.t >= env.account.last {
        return Outcome {
            reward: env.account.reward as f32,
            terminated: true,
            truncated: false,
        };
    }
    let settings = &market.config.finrl;
    let marks = market.tables.marks(t);
    match intent {
        Intent::Hold => env.orders.fill(0.0),
        Intent::Shares => {}
        Intent::Weights => {
            let nav = env.account.nav;
            for ((order, held), mark) in env.orders.iter_mut().zip(&*env.shares).zip(marks) {
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
    let begin = total(env, marks);
    // The next of the largest trades of a side that is not yet made, by selection: there are few, and nothing is allocated.
    while let Some(i) = next_sale(env.orders) {
        sell(market, env, i, exits);
    }
    while let Some(i) = next_purchase(env.orders) {
        if !exits {
            buy(market, env, i);
        }
        env.orders[i] = 0.0;
    }
    env.account.t += 1;
    let t = t + 1;
    if settings.turbulence_threshold.is_some() {
        env.account.risk = market.tables.risk[t];
    }
    let end = total(env, market.tables.marks(t));
    market.mark(env.account, env.shares);
    env.account.nav = end;
    env.account.reward = (end - begin) * settings.reward_scaling;
    Outcome {
        reward: env.account.reward as f32,
        terminated: false,
        truncated: false,
    }
}

/// Cash and stocks: NumPy's products, summed one after the other.
fn total(env: &EnvState, marks: &[f64]) -> f64 {
    env.account.cash
        + env
            .shares
            .iter()
            .zip(marks)
            .fold(0.0, |sum, (held, mark)| sum + mark * held)
}

/// The first of the largest sales.
fn next_sale(orders: &[f64]) -> Option<usize> {
    let mut best = None;
    let mut least = 0.0;
    for (i, &order) in orders.iter().enumerate() {
        if order < least {
            (best, least) = (Some(i), order);
        }
    }
    best
}

/// The last of the largest purchases.
fn next_purchase(orders: &[f64]) -> Option<usize> {
    let mut best = None;
    let mut most = f64::MIN_POSITIVE;
    for (i, &order) in orders.iter().enumerate() {
        if order >= most {
            (best, most) = (Some(i), order);
        }
    }
    best
}

fn sell(market: &Market, env: &mut EnvState, i: usize, exits: bool) {
    let t = env.account.t as usize;
    let price = market.tables.marks(t)[i];
    let wanted = -env.orders[i];
    env.orders[i] = 0.0;
    let held = env.shares[i];
    let trades = exits || market.tables.status(t)[i] & status::TRADES != 0;
    if !trades || held <= 0.0 {
        return;
    }
    let shares = if exits { held } else { wanted.min(held) };
    let cost = market.config.finrl.sell_cost_pct;
    let account = &mut *env.account;
    account.cash += price * shares * (1.0 - cost);
    account.spread_cost += price * shares * cost;
    account.traded += price * shares;
    account.trades += 1;
    env.shares[i] = held - shares;
}

fn buy(market: &Market, env: &mut EnvState, i: usize) {
    let t = env.account.t as usize;
    if market.tables.status(t)[i] & status::TRADES == 0 {
        return;
    }
    let price = market.tables.marks(t)[i];
    let cost = market.config.finrl.buy_cost_pct;
    let account = &mut *env.account;
    let shares = floor_div(account.cash, price * (1.0 + cost)).min(env.orders[i]);
    account.cash -= price * shares * (1.0 + cost);
    account.spread_cost += price * shares * cost;
    account.traded += price * shares;
    account.trades += 1;
    env.shares[i] += shares;
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
