//! The action mask of a state, and the reason for each masked action.

use super::exercise::has_exercisable;
use super::lookup::At;
use super::mark_to_market::Closable;
use super::market::Market;
use super::open_costs::{ALLOWED, Allowed, OpenCosts, can_open_strategy};
use super::state::{Account, Env};
use crate::options::reason::Reason;
use crate::options::strategies::{CLOSE_ALL, CLOSE_OLDEST, FIRST_OPEN, HEDGES, HOLD};

/// The mask of holding, which is always allowed, and of closing.
fn closing(account: &Account, futures: f64, closable: Closable) -> Allowed {
    let hedged = account.units != 0.0 || futures != 0.0;
    let held = account.lines != 0 || hedged;
    let nothing = Reason::NothingToClose as u32;
    let all = match (held, closable.some || hedged) {
        (false, _) => nothing,
        (true, true) => ALLOWED,
        (true, false) => Reason::NoQuote as u32,
    };
    let oldest = match (account.lines, closable.oldest) {
        (0, _) => nothing,
        (_, true) => ALLOWED,
        (_, false) => Reason::NoQuote as u32,
    };
    Allowed {
        mask: 1 << HOLD
            | u64::from(all == ALLOWED) << CLOSE_ALL
            | u64::from(oldest == ALLOWED) << CLOSE_OLDEST,
        counts: (1 << (8 * all)) + (1 << (8 * oldest)),
    }
}

/// Finds the action mask of the state, and counts the reasons.
pub(super) fn update(market: &Market, costs: &OpenCosts, now: At<'_>, env: &mut Env<'_>, closable: Closable) {
    let account = &*env.account;
    let t = account.t as usize;
    let close = closing(account, env.hedge.futures, closable);
    let open = costs.allowed(t, market.config.lines - account.lines as usize);
    let (mut mask, mut counts) = (close.mask | open.mask, close.counts + open.counts);
    let mut doubtful = open.mask & costs.doubtful(market, now, account) << FIRST_OPEN;
    while doubtful != 0 {
        let action = doubtful.trailing_zeros() as usize;
        doubtful &= doubtful - 1;
        let size = f64::from(account.size);
        let opened = can_open_strategy(market, now, env.view(), action - FIRST_OPEN, size);
        if let Err(reason) = opened {
            counts = counts - (1 << (8 * ALLOWED)) + (1 << (8 * reason as u32));
            mask &= !(1 << action);
        }
    }
    if let Some(action) = market.strategies.exercise {
        let is_allowed = has_exercisable(market, now, env);
        mask |= u64::from(is_allowed).checked_shl(action as u32).unwrap_or(0);
        counts += 1
            << (8 * if is_allowed {
                ALLOWED
            } else {
                Reason::NothingToClose as u32
            });
    }
    for (reason, masked) in env.counters.masked.iter_mut().enumerate() {
        *masked += (counts >> (8 * reason)) as u32 & 0xff;
    }
    if market.config.hedge.is_by_action() {
        let first = FIRST_OPEN + market.strategies.legs.len();
        mask |= ((1_u64 << HEDGES.len()) - 1).checked_shl(first as u32).unwrap_or(0);
    }
    env.account.action_mask = mask;
}

/// The reason why an action is masked.
pub(super) fn reason(market: &Market, costs: &OpenCosts, env: &Env<'_>, action: usize) -> Reason {
    let account = &*env.account;
    let nothing = match action {
        CLOSE_ALL => account.lines == 0 && account.units == 0.0 && env.hedge.futures == 0.0,
        CLOSE_OLDEST => account.lines == 0,
        _ => {
            return match action.checked_sub(FIRST_OPEN) {
                Some(strategy) if strategy < market.strategies.legs.len() => {
                    let t = account.t as usize;
                    match costs.check(t, strategy, market.config.lines as u32 - account.lines) {
                        Err(reason) => reason,
                        // The rules themselves, where their bounds did not decide.
                        Ok(()) => {
                            let (now, size) = (market.now(account), f64::from(account.size));
                            let opened = can_open_strategy(market, now, env.view(), strategy, size);
                            opened.err().unwrap_or(Reason::Margin)
                        }
                    }
                }
                _ if Some(action) == market.strategies.exercise => Reason::NothingToClose,
                _ => Reason::NoContract,
            };
        }
    };
    if nothing {
        Reason::NothingToClose
    } else {
        Reason::NoQuote
    }
}
