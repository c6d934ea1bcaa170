//! Trades: their costs, and what cash and margin allow.

use super::hedge;
use super::kernels::{Costing, Exposure, ROUNDING, Trades, exposure, increase, reduce};
use super::market::Market;
use super::state::{Account, Env, Hedge};
use crate::journal::Cause;
use crate::stocks::config::{FillAt, Rules};

/// Books the trades of a pass.
fn book(account: &mut Account, costing: &Costing<'_>, trades: &Trades) {
    let (commission, spread) = (costing.per_share * trades.shares, costing.fraction * trades.traded);
    account.cash -= trades.value + (commission + spread + trades.impact);
    account.traded += trades.traded;
    account.commission += commission;
    account.spread_cost += spread;
    account.impact_cost += trades.impact;
    account.trades += trades.count as u32;
}

/// Makes the trades of the orders: first what reduces positions, then, by one factor for all, as much of the
/// rest as cash (or margin) allows. `decided` is the date whose volumes count; `at` tells the prices of the
/// account's date, which is that of the decision with [`FillAt::Close`].
pub(super) fn execute(market: &Market, env: &mut Env<'_>, decided: usize, at: FillAt) {
    if !market.journal.is_kept() {
        return execute_orders(market, env, decided, at);
    }
    let before = env.positions.to_vec();
    execute_orders(market, env, decided, at);
    book_trades(market, env, &before, decided, at);
}

/// Keeps the bookings of trades that have led from the shares `before` to the present ones.
fn book_trades(market: &Market, env: &Env<'_>, before: &[f64], decided: usize, at: FillAt) {
    let (t, fills) = (env.account.t as usize, &market.config.fills);
    let (prices, marks) = (market.prices(t, at).0, market.tables.marks(t));
    for (i, (now, before)) in env.positions.iter().zip(before).enumerate() {
        let change = now - before;
        if change == 0.0 {
            continue;
        }
        let value = change * prices[i];
        let commission = fills.per_share * change.abs();
        let mut spread = fills.basis_points * 1e-4 * value.abs();
        if fills.impact > 0.0 {
            let (volumes, volatilities) = market.tables.liquidity(decided);
            if volumes[i] > 0.0 {
                spread += fills.impact * volatilities[i] * (change.abs() / volumes[i]).sqrt() * value.abs();
            }
        }
        market.journal.add(|| {
            let booking = market.booking(t, i, change, -value - commission - spread);
            booking.at((value + spread) / change, marks[i], commission, spread)
        });
    }
}

fn execute_orders(market: &Market, env: &mut Env<'_>, decided: usize, at: FillAt) {
    let Env {
        account,
        positions: shares,
        orders,
        hedge: held_hedge,
        ..
    } = env;
    let t = account.t as usize;
    let config = &market.config;
    let (prices, tradable) = market.prices(t, at);
    if at != FillAt::Close {
        let mut refused = 0;
        for (order, flags) in orders.iter_mut().zip(market.tables.status(t)) {
            if flags & tradable == 0 && *order != 0.0 {
                *order = 0.0;
                refused += 1;
            }
        }
        account.refused += refused;
    }
    let with_impact = config.fills.impact > 0.0;
    let (volumes, volatilities): (&[f64], &[f64]) = match with_impact {
        true => market.tables.liquidity(decided),
        false => (&[], &[]),
    };
    let costing = Costing {
        per_share: config.fills.per_share,
        fraction: config.fills.basis_points * 1e-4,
        impact: config.fills.impact,
        prices,
        volumes,
        volatilities,
    };
    let mut trades = Trades::default();
    reduce(market.instructions, orders, shares, &costing, &mut trades);
    book(account, &costing, &trades);
    let rest = trades.rest_value;
    if rest == 0.0 {
        return;
    }
    let costs = costing.per_share * trades.rest_shares + costing.fraction * rest + trades.rest_impact;
    // The hedge as it was before: its value, the cash that a short one brought, and its margin.
    let (asset, proceeds, reserved) = match held_hedge.units {
        0.0 => (0.0, 0.0, 0.0),
        units => {
            let price = hedge::price(&market.tables.hedge(t), at);
            let asset = market.hedge_asset(units, price);
            (asset, (-asset).max(0.0), config.hedge.terms().margin(units, price))
        }
    };
    let factor = match config.has_margin() {
        false => (account.cash - proceeds) / (rest + costs),
        true => {
            let mut held = Exposure::default();
            exposure(market.instructions, shares, prices, &mut held);
            let initial = config.margin.initial;
            (account.cash + held.net + asset - initial * held.gross - reserved) / (costs + initial * rest)
        }
    };
    let factor = factor.max(0.0);
    if factor < 1.0 - ROUNDING {
        account.reduced += orders.iter().map(|order| u32::from(*order != 0.0)).sum::<u32>();
    }
    let lot = f64::from(config.fills.lot);
    increase(market.instructions, orders, shares, &costing, factor, lot, &mut trades);
    book(account, &costing, &trades);
}

/// The cost of closing every position, and the hedge, at the marks of the account's date.
pub(super) fn closing_cost(market: &Market, account: &Account, shares: &[f64], hedge: &Hedge) -> f64 {
    let config = &market.config;
    let t = account.t as usize;
    let (mut gross, mut all, mut impact) = (0.0, 0.0, 0.0);
    for (i, (held, mark)) in shares.iter().zip(market.tables.marks(t)).enumerate() {
        let (size, value) = (held.abs(), (held * mark).abs());
        gross += value;
        all += size;
        if config.fills.impact > 0.0 && size > 0.0 {
            let (volumes, volatilities) = market.tables.liquidity(t);
            if volumes[i] > 0.0 {
                impact += config.fills.impact * volatilities[i] * (size / volumes[i]).sqrt() * value;
            }
        }
    }
    if config.rules == Rules::Finrl {
        return config.finrl.sell_cost_pct * gross;
    }
    let (spread, commission) = match hedge.units.abs() {
        0.0 => (0.0, 0.0),
        units => config.hedge.terms().costs(units, units * market.tables.hedge(t).price),
    };
    config.fills.basis_points * 1e-4 * gross + config.fills.per_share * all + impact + spread + commission
}

/// Closes every position that trades, and the hedge, at the marks of the account's date.
pub(super) fn liquidate(market: &Market, env: &mut Env<'_>) {
    for (order, held) in env.orders.iter_mut().zip(&*env.positions) {
        *order = -held;
    }
    super::orders::restrict(market, env);
    let t = env.account.t as usize;
    let before = market.journal.because(Cause::Liquidation);
    execute(market, env, t, FillAt::Close);
    hedge::close(market, env);
    market.journal.because(before);
    env.account.liquidations += 1;
}
