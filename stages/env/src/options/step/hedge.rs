//! Hedges: trades of the underlying or of a future by the account's delta, and the cost and gain of holding
//! them. [`crate::hedge`] and [`options::hedge`](crate::options::hedge) have the formulas.

use super::lookup::At;
use super::market::Market;
use super::state::Env;
use crate::acting::Holdable;
use crate::hedge::HedgeOrder;
use crate::journal::{Booking, Cause};
use crate::options::hedge::HedgeInstrument;
use crate::options::order::Instrument;

/// The holding of the instrument, of these units of the underlying and futures.
fn held(market: &Market, units: f64, futures: f64) -> f64 {
    match market.config.hedge.instrument {
        HedgeInstrument::None => 0.0,
        HedgeInstrument::Underlying => units,
        HedgeInstrument::Future => futures,
    }
}

/// The hedge's part of the margin requirement of an account with these units of the underlying and futures.
pub(super) fn margin(market: &Market, units: f64, futures: f64, underlying: f64) -> f64 {
    match held(market, units, futures) {
        0.0 => 0.0,
        // The risk array has it.
        _ if market.scenarios.is_some() => 0.0,
        held => market.config.hedge.terms().margin(held, underlying),
    }
}

/// The cost of closing the units of the underlying and the futures held, at the quotes.
pub(super) fn closing_cost(market: &Market, units: f64, futures: f64, underlying: f64) -> f64 {
    let hedge = &market.config.hedge;
    let of_units = match hedge.instrument {
        HedgeInstrument::Underlying => hedge.half_spread,
        _ => market.config.fills.underlying_slippage,
    };
    (units.abs() * of_units + futures.abs() * hedge.half_spread) * underlying
}

/// The present delta of the account, in units of the underlying.
pub(super) fn delta(market: &Market, now: At<'_>, env: &Env<'_>) -> f64 {
    let lines = env.account.lines as usize;
    let options: f64 = env.positions[..lines]
        .iter()
        .zip(&env.terms[..lines])
        .map(|(line, terms)| f64::from(line.quantity) * market.multiplier * now.entry_at(terms.base).delta)
        .sum();
    options + env.account.units + env.hedge.futures
}

/// Hedges the account by the given order.
pub(super) fn rebalance(market: &Market, now: At<'_>, env: &mut Env<'_>, order: HedgeOrder) {
    let config = &market.config.hedge;
    if order == HedgeOrder::Leave || config.is_none() {
        return;
    }
    let delta = delta(market, now, env);
    let units = config.terms().units(order, delta, now.underlying, env.account.nav);
    if units != 0.0 {
        let before = market.journal.because(Cause::Hedge);
        trade(market, now, env, units);
        market.journal.because(before);
    }
}

/// Trades the holding of the instrument towards minus the given share of the options' delta, unless the
/// change is within the band.
pub(super) fn to_ratio(market: &Market, now: At<'_>, env: &mut Env<'_>, ratio: f64) {
    let config = &market.config.hedge;
    if config.is_none() {
        return;
    }
    let held = held(market, env.account.units, env.hedge.futures);
    let exposure = (delta(market, now, env), held);
    let units = config
        .terms()
        .units_to_ratio(ratio, exposure, now.underlying, env.account.nav);
    if units != 0.0 {
        let before = market.journal.because(Cause::Hedge);
        trade(market, now, env, units);
        market.journal.because(before);
    }
}

/// Closes the holding of the instrument.
pub(super) fn close(market: &Market, now: At<'_>, env: &mut Env<'_>) {
    let held = held(market, env.account.units, env.hedge.futures);
    if held != 0.0 {
        trade(market, now, env, -held);
    }
}

/// Trades units of the instrument.
fn trade(market: &Market, now: At<'_>, env: &mut Env<'_>, units: f64) {
    let config = &market.config.hedge;
    let t = env.account.t as usize;
    let is_future = config.instrument == HedgeInstrument::Future;
    let price = match market.tables.future(t).filter(|_| is_future) {
        Some(future) => future.price,
        None => now.underlying,
    };
    let mut value = 0.0;
    if is_future {
        env.hedge.futures += units;
    } else {
        env.account.units += units;
        value = units * now.underlying;
        env.account.cash -= value;
        // The underlying that is held covers short calls.
        env.cached.paired = false;
    }
    let [spread, commission] = pay(market, env, units.abs(), units.abs() * price);
    let paid = price * (1.0 + config.half_spread.copysign(units));
    market.journal.add(|| {
        let cash = -value - spread - commission;
        booking(market, env, units, cash).at(paid, price, commission, spread)
    });
}

/// The booking of a change of what is held of the instrument.
fn booking(market: &Market, env: &Env<'_>, units: f64, cash: f64) -> Booking {
    let booking = market.booking(env.account, Instrument::Underlying, units, cash);
    match market.config.hedge.instrument {
        HedgeInstrument::Future => Booking {
            instrument: Some(Holdable::Future),
            ..booking
        },
        _ => booking,
    }
}

/// Pays for a trade of units of the instrument; returns the spread and the commission.
fn pay(market: &Market, env: &mut Env<'_>, units: f64, notional: f64) -> [f64; 2] {
    let (account, hedge) = (&mut *env.account, &mut *env.hedge);
    let (spread_cost, commission) = market.config.hedge.terms().costs(units, notional);
    account.cash -= spread_cost + commission;
    for (sum, hedges, amount) in [
        (&mut account.spread_cost, &mut hedge.spread_cost, spread_cost),
        (&mut account.commission, &mut hedge.commission, commission),
        (&mut account.traded, &mut hedge.traded, notional),
    ] {
        *sum += amount;
        *hedges += amount;
    }
    [spread_cost, commission]
}

/// Pays for the underlying held short until the next snapshot.
pub(super) fn borrow(market: &Market, env: &mut Env<'_>) {
    let t = env.account.t as usize;
    let short = (-env.account.units).max(0.0);
    let tables = &market.tables;
    let terms = market.config.hedge.terms();
    let cost = terms.borrowing(short, tables.rows.underlying[t], tables.days[t]);
    env.account.cash -= cost;
    env.hedge.borrow += cost;
    market
        .journal
        .add_as(Cause::Borrow, || booking(market, env, 0.0, -cost));
}

/// Settles futures in cash at the snapshot that the account has reached.
pub(super) fn settle(market: &Market, env: &mut Env<'_>) {
    if env.hedge.futures == 0.0 {
        return;
    }
    let t = env.account.t as usize;
    let tables = &market.tables;
    let future = tables.future(t - 1).zip(tables.future(t));
    let gain = match future {
        Some((before, now)) => env.hedge.futures * (now.before - before.price),
        None => {
            let (before, now) = (tables.rows.underlying[t - 1], tables.rows.underlying[t]);
            env.hedge.futures * (now - before - before * tables.growth[t - 1])
        }
    };
    env.account.cash += gain;
    env.hedge.settled += gain;
    market
        .journal
        .add_as(Cause::Settlement, || booking(market, env, 0.0, gain));
    if let Some((_, now)) = future.filter(|(_, now)| now.is_roll) {
        let units = env.hedge.futures.abs();
        let [spread, commission] = pay(market, env, 2.0 * units, units * (now.before + now.price));
        market.journal.add_as(Cause::Settlement, || Booking {
            commission,
            spread,
            ..booking(market, env, 0.0, -spread - commission)
        });
    }
}
