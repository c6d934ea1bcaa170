//! Fills: trades at the quotes of a snapshot, across the spread.

use super::hedge;
use super::lookup::{Adjusted, At};
use super::market::Market;
use super::state::{Account, Env, Line, Terms};
use crate::journal::Cause;
use crate::options::order::Instrument;

/// The lines to close.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Close {
    /// All lines, the underlying and futures.
    All,
    /// The lines of one strategy.
    Group(u32),
}

/// Trades one leg at the current prices.
pub(super) fn trade(
    market: &Market,
    now: At<'_>,
    account: &mut Account,
    instrument: Instrument,
    quantity: f64,
) {
    let (price, mark) = market.price(now, instrument, quantity);
    let (units, commission) = match instrument {
        Instrument::Underlying => {
            account.units += quantity;
            (quantity, 0.0)
        }
        Instrument::Contract(_) => {
            let commission = quantity.abs() * market.config.fills.commission;
            account.cash -= commission;
            account.commission += commission;
            account.contracts_traded += quantity.abs();
            (quantity * market.multiplier, commission)
        }
    };
    account.cash -= units * price;
    account.traded += (units * price).abs();
    account.spread_cost += units * (price - mark);
    market.journal.add(|| {
        market
            .booking(account, instrument, quantity, -units * price - commission)
            .at(price, mark, commission, units * (price - mark))
    });
}

/// Trades `legs`, which opens a line for each contract.
pub(super) fn open(
    market: &Market,
    now: At<'_>,
    env: &mut Env<'_>,
    legs: impl Iterator<Item = (Instrument, f64)>,
) {
    let group = env.account.groups;
    env.account.groups += 1;
    env.cached.paired = false;
    for (instrument, quantity) in legs {
        trade(market, now, env.account, instrument, quantity);
        if let Instrument::Contract(contract) = instrument {
            let line = Line {
                contract,
                quantity: quantity as i32,
                opened: env.account.t,
                group,
            };
            let i = env.account.lines as usize;
            (env.positions[i], env.terms[i]) = (line, market.terms(now, &line));
            env.account.lines += 1;
        }
    }
}

/// Leaves the lines for which `keeps` returns true, which may trade and change them.
pub(super) fn retain(env: &mut Env<'_>, mut keeps: impl FnMut(&mut Account, &mut Line, &Terms) -> bool) {
    let lines = env.account.lines as usize;
    let mut kept = 0;
    for i in 0..lines {
        let (mut line, terms) = (env.positions[i], env.terms[i]);
        if keeps(env.account, &mut line, &terms) {
            (env.positions[kept], env.terms[kept]) = (line, terms);
            kept += 1;
        }
    }
    env.positions[kept..lines].fill(Line::default());
    env.account.lines = kept as u32;
}

/// Closes the lines of `which` that have a quote.
pub(super) fn close(market: &Market, now: At<'_>, env: &mut Env<'_>, which: Close) {
    env.cached.paired = false;
    retain(env, |account, line, terms| {
        let chosen = match which {
            Close::All => true,
            Close::Group(group) => line.group == group,
        };
        let is_closed = chosen && !now.entry_at(terms.base).exit(line.quantity).is_nan();
        if is_closed {
            let contract = Instrument::Contract(line.contract);
            trade(market, now, account, contract, -f64::from(line.quantity));
        }
        !is_closed
    });
    if which == Close::All {
        hedge::close(market, now, env);
        if env.account.units != 0.0 {
            trade(market, now, env.account, Instrument::Underlying, -env.account.units);
        }
    }
}

/// Reduces the lines of a group by the given number of contracts, the oldest first. Returns whether all those
/// lines had quotes.
pub(super) fn reduce(market: &Market, now: At<'_>, env: &mut Env<'_>, group: u32, contracts: i32) -> bool {
    env.cached.paired = false;
    let mut left = contracts;
    retain(env, |account, line, terms| {
        let has_quote = !now.entry_at(terms.base).exit(line.quantity).is_nan();
        if line.group == group && left > 0 && has_quote {
            let closed = left.min(line.quantity.abs());
            let quantity = -line.quantity.signum() * closed;
            let contract = Instrument::Contract(line.contract);
            trade(market, now, account, contract, f64::from(quantity));
            line.quantity += quantity;
            left -= closed;
        }
        line.quantity != 0
    });
    left == 0
}

/// Adjusts positions for corporate actions that take effect at this snapshot.
pub(super) fn adjust(market: &Market, now: At<'_>, env: &mut Env<'_>, adjusted: &Adjusted) {
    let (adjustment, journal) = (&adjusted.adjustment, &market.journal);
    let (dividend, before) = (env.account.units * adjustment.cash, env.account.units);
    env.account.cash += dividend;
    journal.add_as(Cause::Dividend, || {
        market.booking(env.account, Instrument::Underlying, 0.0, dividend)
    });
    env.account.units *= f64::from(adjustment.shares);
    let mut fraction = 0.0;
    if adjustment.ratio != 1.0 {
        let units = env.account.units * adjustment.ratio;
        // A product that is whole but for its rounding has no fraction.
        env.account.units = (units * (1.0 + 1e-12)).floor();
        fraction = (units - env.account.units) * now.underlying;
        env.account.cash += fraction;
    }
    let more = env.account.units - before;
    journal.add_as(Cause::Adjustment, || {
        market.booking(env.account, Instrument::Underlying, more, fraction)
    });
    if adjusted.successors.is_empty() {
        return;
    }
    env.cached.paired = false;
    let lines = env.account.lines as usize;
    for (line, terms) in env.positions[..lines].iter_mut().zip(&mut env.terms[..lines]) {
        if let Some(&successor) = adjusted.successors.get(&line.contract) {
            let of = |line: &Line, sign: f64| {
                let quantity = sign * f64::from(line.quantity);
                market.booking(env.account, Instrument::Contract(line.contract), quantity, 0.0)
            };
            journal.add_as(Cause::Adjustment, || of(line, -1.0));
            line.contract = successor;
            line.quantity = line.quantity.saturating_mul(adjustment.shares as i32);
            journal.add_as(Cause::Adjustment, || of(line, 1.0));
            *terms = market.terms(now, line);
        }
    }
}
