//! Continuous actions: a weight for each slot of the slate, traded to in whole contracts, and a hedge ratio.
//! [`action_space`](crate::options::action_space) has the rules.

use super::hedge;
use super::lookup::{Adjusted, At};
use super::market::{Basket, Market};
use super::open_costs::affordable;
use super::state::{Account, Env, Line};
use super::trade::{reduce, trade};
use crate::hedge::HedgeOrder;
use crate::options::order::Instrument;
use crate::options::reason::Reason;

/// The snapshot of a decision, to whose slate the weights refer, and the number of contracts for which a
/// weight of 1 stood there.
#[derive(Clone, Copy)]
pub(super) struct Decided {
    t: u32,
    full: f64,
}

impl Decided {
    /// A decision at the snapshot of an account.
    pub(super) fn now(market: &Market, account: &Account) -> Self {
        Self {
            t: account.t,
            full: market.exact_size(account, market.now(account).underlying),
        }
    }
}

/// Trades the slots towards the weights of a decision, at the present prices, and counts refusals. Returns
/// the hedge that is to follow.
pub(super) fn rebalance(market: &Market, env: &mut Env<'_>, weights: &[f32], decided: Decided) -> HedgeOrder {
    let now = market.now(env.account);
    let slots = market.slate(decided.t as usize).len();
    // A corporate action since then.
    let adjusted = match decided.t == env.account.t {
        true => None,
        false => market.adjusted(env.account.t),
    };
    let shares = adjusted.map_or(1, |adjusted| adjusted.adjustment.shares as i32);
    let full = decided.full * f64::from(shares);
    let no_trade = market.config.no_trade;
    let target = |slot: usize| {
        let weight = f64::from(weights[slot]);
        // Not a number: no weight at all.
        if weight.is_nan() || weight.abs() < no_trade {
            return 0;
        }
        let contracts = (weight.clamp(-1.0, 1.0) * decided.full).clamp(-1e5, 1e5);
        (contracts.round() as i32).saturating_mul(shares)
    };
    let wanted = |env: &Env<'_>, slot: usize| {
        let (held, target) = (held(env, slot), target(slot));
        let is_small = f64::from((target - held).abs()) < no_trade * full;
        (held, if target != 0 && is_small { held } else { target })
    };
    for slot in 0..slots {
        let (held, target) = wanted(env, slot);
        // Through zero: the rest is an increase.
        let kept = if held.signum() == target.signum() {
            target.abs().min(held.abs())
        } else {
            0
        };
        if held != 0 && kept < held.abs() {
            let all_quoted = reduce(market, now, env, slot as u32, held.abs() - kept);
            if !all_quoted {
                env.counters.refused[Reason::NoQuote as usize] += 1;
            }
        }
    }
    for slot in 0..slots {
        let (held, target) = wanted(env, slot);
        if target != 0
            && held.signum() != -target.signum()
            && target.abs() > held.abs()
            && let Err(reason) = contract(market, decided, slot, adjusted)
                .and_then(|contract| increase(market, now, env, (slot, contract), target - held))
        {
            env.counters.refused[reason as usize] += 1;
        }
    }
    if !market.config.hedge.is_by_action() {
        return market.config.hedge.terms().order();
    }
    hedge::to_ratio(market, now, env, f64::from(weights[slots]));
    HedgeOrder::Leave
}

/// The number of contracts held that were opened through a slot.
fn held(env: &Env<'_>, slot: usize) -> i32 {
    let lines = &env.positions[..env.account.lines as usize];
    let of_slot = lines.iter().filter(|line| line.group as usize == slot);
    of_slot.map(|line| line.quantity).sum()
}

/// The contract that a slot showed at a decision, under its successor's number after a corporate action.
fn contract(
    market: &Market,
    decided: Decided,
    slot: usize,
    adjusted: Option<&Adjusted>,
) -> Result<u32, Reason> {
    let id = market.slate(decided.t as usize)[slot];
    let contract = u32::try_from(id).map_err(|_| Reason::NoContract)?;
    let successor = adjusted.and_then(|adjusted| adjusted.successors.get(&contract));
    Ok(successor.copied().unwrap_or(contract))
}

/// Buys or sells contracts through a slot.
fn increase(
    market: &Market,
    now: At<'_>,
    env: &mut Env<'_>,
    (slot, contract): (usize, u32),
    quantity: i32,
) -> Result<(), Reason> {
    let instrument = Instrument::Contract(contract);
    let n = env.account.lines as usize;
    let same = |line: &Line| line.contract == contract && line.group as usize == slot;
    let line = env.positions[..n].iter().position(same);
    Reason::NoRoom.when(line.is_none() && n == market.config.lines)?;
    let mut basket = Basket::EMPTY;
    basket.push(instrument, f64::from(quantity));
    let basket = market.filled(now, basket)?;
    let quantity = basket.legs()[0].1 as i32;
    affordable(market, now, env.view(), &basket)?;
    env.cached.paired = false;
    trade(market, now, env.account, instrument, f64::from(quantity));
    match line {
        Some(i) => env.positions[i].quantity += quantity,
        None => {
            env.positions[n] = Line {
                contract,
                quantity,
                opened: env.account.t,
                group: slot as u32,
            };
            env.terms[n] = market.terms(now, &env.positions[n]);
            env.account.lines += 1;
        }
    }
    Ok(())
}
