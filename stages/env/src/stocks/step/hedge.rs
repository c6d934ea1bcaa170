//! The hedge of an account: trades of the instrument by the portfolio's exposure, and what it costs and earns
//! to hold it. [`crate::hedge`] and [`stocks::hedge`](crate::stocks::StocksHedge) have the formulas.

use super::kernels::{Exposure, exposure, weighted};
use super::market::Market;
use super::state::{Account, Env};
use crate::hedge::{HedgeOrder, HedgeTerms};
use crate::stocks::tables::{HedgeQuote, status};

/// The order for the hedge, after the other trades of a decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HedgeAct {
    Order(HedgeOrder),
    /// The share of the portfolio's exposure that the hedge takes away.
    Ratio(f32),
}

/// The portfolio's exposure to the instrument at prices, in currency, by the betas of date `decided`.
pub(super) fn portfolio_exposure(market: &Market, shares: &[f64], prices: &[f64], decided: usize) -> f64 {
    if market.config.hedge.has_betas() {
        let mut sum = 0.0;
        weighted(
            market.instructions,
            shares,
            prices,
            market.tables.betas(decided),
            &mut sum,
        );
        return sum;
    }
    let mut held = Exposure::default();
    exposure(market.instructions, shares, prices, &mut held);
    held.net
}

/// The price of the instrument, of the date that an account has come to: its open, or its close.
pub(super) fn price(quote: &HedgeQuote, later: bool) -> f64 {
    if later { quote.open } else { quote.price }
}

/// Hedges the account after its other trades. `decided` is the date of the decision; `later` trades at the
/// opens of the account's date, else at its closes.
pub(super) fn rebalance(market: &Market, env: &mut Env<'_>, act: HedgeAct, decided: usize, later: bool) {
    if act == HedgeAct::Order(HedgeOrder::Leave) {
        return;
    }
    let t = env.account.t as usize;
    let tables = &market.tables;
    let quote = tables.hedge(t);
    let price = price(&quote, later);
    if price <= 0.0 {
        return;
    }
    let prices = if later { tables.opens(t) } else { tables.marks(t) };
    let (held, nav) = (env.hedge.units, env.account.nav);
    let exposure = portfolio_exposure(market, env.positions, prices, decided) / price + held;
    let terms = market.config.hedge.terms();
    let units = match act {
        HedgeAct::Order(order) => terms.units(order, exposure, price, nav),
        HedgeAct::Ratio(ratio) => terms.units_to_ratio(f64::from(ratio), (exposure, held), price, nav),
    };
    trade(market, env, units, (&quote, later));
}

/// Closes what is held of the instrument at the close.
pub(super) fn close(market: &Market, env: &mut Env<'_>) {
    if env.hedge.units == 0.0 {
        return;
    }
    let quote = market.tables.hedge(env.account.t as usize);
    trade(market, env, -env.hedge.units, (&quote, false));
}

/// Trades units of the instrument, where it has a price.
fn trade(market: &Market, env: &mut Env<'_>, units: f64, (quote, later): (&HedgeQuote, bool)) {
    let needed = if later { status::OPENS } else { status::TRADES };
    if units == 0.0 {
        return;
    }
    if !quote.has(needed) {
        env.account.refused += 1;
        return;
    }
    let price = price(quote, later);
    env.hedge.units += units;
    env.account.cash -= market.hedge_asset(units, price);
    pay(&market.config.hedge.terms(), env, units.abs(), units.abs() * price);
    env.account.trades += 1;
    if later {
        gain(market, env, units * (quote.before - price));
    }
}

/// Pays for a trade of units of the instrument.
fn pay(terms: &HedgeTerms, env: &mut Env<'_>, units: f64, notional: f64) {
    let (spread_cost, commission) = terms.costs(units, notional);
    env.account.cash -= spread_cost + commission;
    env.hedge.spread_cost += spread_cost;
    env.hedge.commission += commission;
    env.hedge.traded += notional;
}

/// Books a gain of prices, which a future pays in cash.
fn gain(market: &Market, env: &mut Env<'_>, gain: f64) {
    env.hedge.gains += gain;
    if market.config.hedge.is_future() {
        env.account.cash += gain;
    }
}

/// Pays for units held short, from date `t` to the next.
pub(super) fn borrow(market: &Market, env: &mut Env<'_>, t: usize) {
    let hedge = &market.config.hedge;
    if env.hedge.units >= 0.0 || hedge.is_future() {
        return;
    }
    let tables = &market.tables;
    let cost = hedge
        .terms()
        .borrowing(-env.hedge.units, tables.hedge(t).price, tables.days[t]);
    env.account.cash -= cost;
    env.hedge.borrow += cost;
}

/// Brings what is held to the account's date: corporate actions, gains of prices up to its close, and a
/// settlement where the instrument counts as delisted.
pub(super) fn settle(market: &Market, env: &mut Env<'_>) {
    let held = env.hedge.units;
    if held == 0.0 {
        return;
    }
    let t = env.account.t as usize;
    let (last, quote) = (market.tables.hedge(t - 1), market.tables.hedge(t));
    let paid = held * quote.cash;
    env.account.cash += paid;
    env.hedge.dividends += paid;
    env.hedge.units = held * quote.ratio;
    gain(market, env, env.hedge.units * quote.before - held * last.price);
    if quote.has(status::SETTLES) {
        let value = market.hedge_asset(env.hedge.units, quote.price);
        let loss = value.abs() * market.config.delisting.haircut;
        env.account.cash += value - loss;
        env.account.delisting_loss += loss;
        env.account.settlements += 1;
        env.hedge.units = 0.0;
    }
}

/// Moves futures to another contract where the date does, at the closes of both.
pub(super) fn roll(market: &Market, env: &mut Env<'_>) {
    let quote = market.tables.hedge(env.account.t as usize);
    if env.hedge.units != 0.0 && quote.has(status::ROLLS) {
        let units = env.hedge.units.abs();
        pay(
            &market.config.hedge.terms(),
            env,
            2.0 * units,
            units * (quote.before + quote.price),
        );
    }
}

/// The margin requirement of the hedge of an account; none without one.
pub(super) fn margin(market: &Market, account: &Account, units: f64) -> f64 {
    if units == 0.0 {
        return 0.0;
    }
    let price = market.tables.hedge(account.t as usize).price;
    market.config.hedge.terms().margin(units, price)
}
