//! Early exercise, assignment, expiry and delivery; [`exercise`](crate::options::exercise) has the settings.

use super::lookup::At;
use super::market::Market;
use super::state::{Account, Env, Line, Terms};
use super::trade::{retain, trade};
use crate::journal::Cause;
use crate::options::exercise::Delivery;
use crate::options::order::Instrument;
use stages_numerics::black_scholes::intrinsic;

/// The intrinsic value of a unit of a line's contract.
fn intrinsic_of(market: &Market, now: At<'_>, terms: &Terms) -> f64 {
    let delivered = now.underlying * market.tables.shares(terms.deliverable);
    intrinsic(delivered, terms.strike, terms.call)
}

/// Assigns short lines whose holders exercise at this snapshot. `dividend` is what the next snapshot pays for
/// each unit of the underlying.
pub(super) fn assign(market: &Market, now: At<'_>, env: &mut Env<'_>, dividend: f64) {
    let rule = &market.config.exercise;
    market.journal.because(Cause::Assignment);
    let mut contracts = 0;
    remove(market, now, env, |line, terms| {
        let shares = market.tables.shares(terms.deliverable);
        let mark = now.entry_at(terms.base).mark;
        let (inner, delivered) = (intrinsic_of(market, now, terms), now.underlying * shares);
        let is_assigned =
            line.quantity < 0 && rule.is_assigned(terms.call, inner, mark, delivered, dividend * shares);
        contracts += if is_assigned { line.quantity.unsigned_abs() } else { 0 };
        is_assigned
    });
    env.account.assigned += contracts;
}

/// Returns whether a line can be exercised.
fn is_exercisable(market: &Market, now: At<'_>, line: &Line, terms: &Terms) -> bool {
    line.quantity > 0 && !now.entry_at(terms.base).is_settled() && intrinsic_of(market, now, terms) > 0.0
}

/// Returns whether an account has lines that can be exercised.
pub(super) fn has_exercisable(market: &Market, now: At<'_>, env: &Env<'_>) -> bool {
    let mut lines = env.positions[..env.account.lines as usize].iter().zip(env.terms.iter());
    lines.any(|(line, terms)| is_exercisable(market, now, line, terms))
}

/// Exercises all long lines in the money.
pub(super) fn exercise(market: &Market, now: At<'_>, env: &mut Env<'_>) {
    let before = market.journal.because(Cause::Exercise);
    remove(market, now, env, |line, terms| is_exercisable(market, now, line, terms));
    market.journal.because(before);
}

/// Removes the exercised lines, delivers what they are for, and buys what is then short.
fn remove(
    market: &Market,
    now: At<'_>,
    env: &mut Env<'_>,
    mut is_exercised: impl FnMut(&Line, &Terms) -> bool,
) {
    let (lines, before) = (env.account.lines, env.account.units);
    retain(env, |account, line, terms| {
        let is_exercised = is_exercised(line, terms);
        if is_exercised {
            deliver(market, now, account, line, terms);
        }
        !is_exercised
    });
    if env.account.lines < lines {
        env.cached.paired = false;
        cover(market, now, env.account, before);
    }
}

/// Delivers what a line in the money is for: the underlying against the strike, or its intrinsic value.
pub(super) fn deliver(market: &Market, now: At<'_>, account: &mut Account, line: &Line, terms: &Terms) {
    let units = f64::from(line.quantity) * market.multiplier;
    let (quantity, contract) = (-f64::from(line.quantity), Instrument::Contract(line.contract));
    match market.config.exercise.delivery {
        Delivery::Cash => {
            let value = intrinsic_of(market, now, terms);
            account.cash += units * value;
            market.journal.add(|| {
                let booking = market.booking(account, contract, quantity, units * value);
                booking.at(value, now.entry_at(terms.base).mark, 0.0, 0.0)
            });
        }
        Delivery::Physical => {
            let received = if terms.call { units } else { -units };
            let shares = received * market.tables.shares(terms.deliverable);
            // A fraction of a share is paid in cash.
            let whole = shares.round();
            let whole = if (shares - whole).abs() <= 1e-9 * whole.abs() {
                whole
            } else {
                shares.trunc()
            };
            let paid = (shares - whole) * now.underlying - received * terms.strike;
            account.units += whole;
            account.cash += paid;
            market.journal.add(|| market.booking(account, contract, quantity, 0.0));
            market.journal.add(|| {
                let booking = market.booking(account, Instrument::Underlying, whole, paid);
                booking.at(terms.strike, now.underlying, 0.0, 0.0)
            });
        }
    }
}

/// Buys the units of which deliveries have left the account short, beyond those it had `before`.
pub(super) fn cover(market: &Market, now: At<'_>, account: &mut Account, before: f64) {
    let short = before.min(0.0) - account.units;
    if short > 0.0 {
        trade(market, now, account, Instrument::Underlying, short);
    }
}

/// Settles the lines that expire at this snapshot, in cash or by delivery.
pub(super) fn settle(market: &Market, now: At<'_>, env: &mut Env<'_>) {
    env.cached.paired = false;
    market.journal.because(Cause::Expiry);
    let (before, is_physical) = (env.account.units, market.config.exercise.delivery == Delivery::Physical);
    retain(env, |account, line, terms| {
        let entry = now.entry_at(terms.base);
        if entry.is_settled() && !(is_physical && entry.mark > 0.0) {
            let paid = f64::from(line.quantity) * market.multiplier * entry.mark;
            account.cash += paid;
            market.journal.add(|| {
                let contract = Instrument::Contract(line.contract);
                let booking = market.booking(account, contract, -f64::from(line.quantity), paid);
                booking.at(entry.mark, entry.mark, 0.0, 0.0)
            });
        } else if entry.is_settled() {
            deliver(market, now, account, line, terms);
        }
        !entry.is_settled()
    });
    if is_physical {
        cover(market, now, env.account, before);
    }
}
