//! The hedge of an account: trades of the instrument by the portfolio's exposure, and what it costs and earns
//! to hold it. [`crate::hedge`] and [`stocks::hedge`](crate::stocks::StocksHedge) have the formulas.

use super::kernels::{Exposure, exposure, weighted};
use super::market::Market;
use super::state::{Account, Env};
use crate::hedge::{HedgeOrder, HedgeTerms};
use crate::journal::{Booking, Cause};
use crate::stocks::config::FillAt;
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

/// The price of the instrument, of the date that an account has come to: its open, or its close; of a future
/// that of the contract that was held up to this date, unless the decision sees the close.
pub(super) fn price(quote: &HedgeQuote, at: FillAt) -> f64 {
    match at {
        FillAt::Close => quote.price,
        FillAt::NextOpen => quote.open,
        FillAt::NextClose => quote.before,
    }
}

/// Hedges the account after its other trades. `decided` is the date of the decision; `at` tells the prices of
/// the account's date.
pub(super) fn rebalance(market: &Market, env: &mut Env<'_>, act: HedgeAct, decided: usize, at: FillAt) {
    if act == HedgeAct::Order(HedgeOrder::Leave) {
        return;
    }
    let t = env.account.t as usize;
    let tables = &market.tables;
    let quote = tables.hedge(t);
    let price = price(&quote, at);
    if price <= 0.0 {
        return;
    }
    let (prices, _) = market.prices(t, at);
    let (held, nav) = (env.hedge.units, env.account.nav);
    let exposure = portfolio_exposure(market, env.positions, prices, decided) / price + held;
    let terms = market.config.hedge.terms();
    let units = match act {
        HedgeAct::Order(order) => terms.units(order, exposure, price, nav),
        HedgeAct::Ratio(ratio) => terms.units_to_ratio(f64::from(ratio), (exposure, held), price, nav),
    };
    let before = market.journal.because(Cause::Hedge);
    trade(market, env, units, (&quote, at));
    market.journal.because(before);
}

/// Closes what is held of the instrument at the close.
pub(super) fn close(market: &Market, env: &mut Env<'_>) {
    if env.hedge.units == 0.0 {
        return;
    }
    let quote = market.tables.hedge(env.account.t as usize);
    trade(market, env, -env.hedge.units, (&quote, FillAt::Close));
}

/// Trades units of the instrument, where it has a price.
fn trade(market: &Market, env: &mut Env<'_>, units: f64, (quote, at): (&HedgeQuote, FillAt)) {
    let needed = if at == FillAt::NextOpen {
        status::OPENS
    } else {
        status::TRADES
    };
    if units == 0.0 {
        return;
    }
    if !quote.has(needed) {
        env.account.refused += 1;
        return;
    }
    let price = price(quote, at);
    let (value, terms) = (market.hedge_asset(units, price), market.config.hedge.terms());
    env.hedge.units += units;
    env.account.cash -= value;
    let [spread, commission] = pay(&terms, env, units.abs(), units.abs() * price);
    env.account.trades += 1;
    market.journal.add(|| {
        let booking = market.hedge_booking(units, -value - spread - commission);
        booking.at(
            price * (1.0 + terms.half_spread.copysign(units)),
            quote.price,
            commission,
            spread,
        )
    });
    if at != FillAt::Close {
        gain(market, env, units * (quote.before - price));
    }
}

/// Pays for a trade of units of the instrument; returns the spread and the commission.
fn pay(terms: &HedgeTerms, env: &mut Env<'_>, units: f64, notional: f64) -> [f64; 2] {
    let (spread_cost, commission) = terms.costs(units, notional);
    env.account.cash -= spread_cost + commission;
    env.hedge.spread_cost += spread_cost;
    env.hedge.commission += commission;
    env.hedge.traded += notional;
    [spread_cost, commission]
}

/// Books a gain of prices, which a future pays in cash.
fn gain(market: &Market, env: &mut Env<'_>, gain: f64) {
    env.hedge.gains += gain;
    if market.config.hedge.is_future() {
        env.account.cash += gain;
        market
            .journal
            .add_as(Cause::Settlement, || market.hedge_booking(0.0, gain));
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
    market
        .journal
        .add_as(Cause::Borrow, || market.hedge_booking(0.0, -cost));
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
    let more = env.hedge.units - held;
    market
        .journal
        .add_as(Cause::Dividend, || market.hedge_booking(0.0, paid));
    market
        .journal
        .add_as(Cause::Adjustment, || market.hedge_booking(more, 0.0));
    gain(market, env, env.hedge.units * quote.before - held * last.price);
    if quote.has(status::SETTLES) {
        let value = market.hedge_asset(env.hedge.units, quote.price);
        let loss = value.abs() * market.config.delisting.haircut;
        env.account.cash += value - loss;
        env.account.delisting_loss += loss;
        env.account.settlements += 1;
        let units = env.hedge.units;
        market.journal.add_as(Cause::Delisting, || {
            market
                .hedge_booking(-units, value - loss)
                .at(quote.price, quote.price, 0.0, loss)
        });
        env.hedge.units = 0.0;
    }
}

/// Moves futures to another contract where the date does, at the closes of both.
pub(super) fn roll(market: &Market, env: &mut Env<'_>) {
    let quote = market.tables.hedge(env.account.t as usize);
    if env.hedge.units != 0.0 && quote.has(status::ROLLS) {
        let units = env.hedge.units.abs();
        let [spread, commission] = pay(
            &market.config.hedge.terms(),
            env,
            2.0 * units,
            units * (quote.before + quote.price),
        );
        market.journal.add_as(Cause::Settlement, || Booking {
            commission,
            spread,
            ..market.hedge_booking(0.0, -spread - commission)
        });
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
