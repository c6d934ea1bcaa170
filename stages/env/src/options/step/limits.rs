//! Limits of the portfolio's delta, vega and margin.

use super::lookup::At;
use super::market::{Basket, Market};
use super::state::View;
use crate::hedge::HedgeRule;
use crate::options::order::Instrument;
use crate::options::reason::Reason;

/// Checks that an account keeps the limits with a basket added to its lines, which together need the given
/// margin; a figure above its limit may still come down.
pub(super) fn check(
    market: &Market,
    now: At<'_>,
    env: View<'_>,
    basket: &Basket,
    margin: f64,
) -> Result<(), Reason> {
    let limits = &market.config.limits;
    if limits.is_none() {
        return Ok(());
    }
    let account = env.account;
    let held = env.positions[..account.lines as usize].iter();
    let of_lines = held.map(|line| (Instrument::Contract(line.contract), f64::from(line.quantity)));
    let before = greeks(market, now, of_lines);
    let opened = greeks(market, now, basket.legs().iter().copied());
    let nav = account.nav.max(1e-3 * market.config.capital);
    let exceeds = |limit: Option<f64>, before: f64, after: f64| {
        limit.is_some_and(|limit| after.abs() > limit * nav && after.abs() > before.abs())
    };
    let held = account.units + env.hedge.futures;
    let delta = |delta: f64| hedged(market, delta * now.underlying, nav);
    let is_exceeded = exceeds(limits.delta, delta(before.0 + held), delta(before.0 + opened.0 + held))
        || exceeds(limits.vega, before.1, before.1 + opened.1)
        || exceeds(limits.margin, account.margin, margin);
    if is_exceeded { Err(Reason::Limit) } else { Ok(()) }
}

/// The part of a delta that remains after the rule of the hedge, in currency.
fn hedged(market: &Market, delta: f64, nav: f64) -> f64 {
    let hedge = &market.config.hedge;
    match hedge.rule {
        _ if hedge.is_none() => delta,
        HedgeRule::Action => delta,
        HedgeRule::Zero => 0.0,
        HedgeRule::Band => delta.clamp(-hedge.band * nav, hedge.band * nav),
    }
}

/// Delta in units of the underlying, and vega.
fn greeks(market: &Market, now: At<'_>, held: impl Iterator<Item = (Instrument, f64)>) -> (f64, f64) {
    held.fold((0.0, 0.0), |(delta, vega), (instrument, quantity)| match instrument {
        Instrument::Underlying => (delta + quantity, vega),
        Instrument::Contract(id) => {
            let (entry, units) = (now.entry(id), quantity * market.multiplier);
            (delta + units * entry.delta, vega + units * entry.vega)
        }
    })
}
