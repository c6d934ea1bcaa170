//! Mark-to-market at a snapshot: settlement, value, Greeks, margin, and liquidation where margin is not met.

use super::exercise::settle;
use super::hedge;
use super::lookup::At;
use super::market::Market;
use super::state::{Env, Terms};
use super::trade::{Close, close};
use crate::journal::Cause;
use crate::options::config::MAX_LINES;
use crate::options::margin::{MarginLeg, charge_above_mark, requirement_and_pairs};
use crate::options::portfolio_margin::{SCENARIOS, Scan, Scenario};
use crate::options::tables::Entry;
use std::cmp::Ordering;

/// The number of lines that most accounts do not exceed; their legs fit a small array.
const FEW: usize = 8;

/// The lines that can be closed at the present quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Closable {
    /// True if some line can be closed.
    pub some: bool,
    /// True if all lines of the strategy that was opened first can be closed.
    pub oldest: bool,
}

/// Settles and marks the account, and liquidates where margin is not met.
pub(super) fn settle_and_mark(market: &Market, now: At<'_>, env: &mut Env<'_>) -> Closable {
    let (mut closable, settles) = mark(market, now, env);
    if settles {
        settle(market, now, env);
        closable = mark(market, now, env).0;
    }
    if market.collateral(env.account, now.underlying) < market.config.margin.maintenance * env.account.margin
    {
        return liquidate(market, now, env, closable);
    }
    closable
}

/// Marks the account to market: value, Greeks, margin. Returns the lines that can be closed, and true if some
/// line settles now.
pub(super) fn mark(market: &Market, now: At<'_>, env: &mut Env<'_>) -> (Closable, bool) {
    let n = env.account.lines as usize;
    let (lines, terms) = (&env.positions[..n], &env.terms[..n]);
    let underlying = now.underlying;
    let (mut marks, mut liquid) = (0.0, 0.0);
    let mut greeks = [0.0; 4];
    let (mut short, mut settles) = (false, false);
    let first = lines.first().map_or(0, |line| line.group);
    let mut closable = Closable {
        some: false,
        oldest: n != 0,
    };
    let mut paired = PairedMargin::default();
    for (line, terms) in lines.iter().zip(terms) {
        let entry = now.entry_at(terms.base);
        let units = f64::from(line.quantity) * market.multiplier;
        marks += units * entry.mark;
        let exit = entry.exit(line.quantity);
        let quoted = !exit.is_nan();
        closable.some |= quoted;
        closable.oldest &= quoted || line.group != first;
        liquid += units
            * match (quoted, entry.source == Entry::QUOTED) {
                (true, _) => exit,
                // A quote without a bid: a long is worth nothing.
                (false, true) => 0.0,
                (false, false) => entry.mark,
            };
        for (sum, greek) in greeks
            .iter_mut()
            .zip([entry.delta, entry.gamma, entry.vega, entry.theta])
        {
            *sum += units * greek;
        }
        short |= line.quantity < 0;
        settles |= entry.is_settled();
        paired.add(market, underlying, entry.mark, terms);
    }
    let account = &mut *env.account;
    let held = account.cash + account.units * underlying;
    account.nav = held + marks;
    let slippage = market.config.fills.underlying_slippage;
    account.liquidation = match market.config.hedge.is_none() {
        true => account.cash + account.units * underlying * (1.0 - slippage) + liquid,
        false => held + liquid - hedge::closing_cost(market, account.units, env.hedge.futures, underlying),
    };
    account.delta = greeks[0] + account.units + env.hedge.futures;
    [account.gamma, account.vega, account.theta] = [greeks[1], greeks[2], greeks[3]];
    let one_contract = market.multiplier * underlying;
    account.size = match market.config.sizing.contracts {
        // Rounded: the cast drops the fraction after the half that is added.
        0 => (market.config.sizing.notional * account.nav / one_contract + 0.5).clamp(1.0, 1e5) as u32,
        n => n.min(100_000),
    };
    env.account.margin = if let Some(scenarios) = &market.scenarios {
        scan(market, now, env, scenarios)
    } else if !short {
        0.0
    } else if env.cached.paired && paired.holds {
        paired.requirement(market.multiplier)
    } else if n <= FEW {
        pair::<FEW>(market, now, env)
    } else {
        pair::<MAX_LINES>(market, now, env)
    };
    env.account.margin += hedge::margin(market, env.account.units, env.hedge.futures, underlying);
    (closable, settles)
}

/// The portfolio margin requirement.
fn scan(market: &Market, now: At<'_>, env: &Env<'_>, scenarios: &[Scenario; SCENARIOS]) -> f64 {
    let mut scan = Scan::new(env.account.units + env.hedge.futures, now.underlying, scenarios);
    let n = env.account.lines as usize;
    for (line, terms) in env.positions[..n].iter().zip(env.terms.iter()) {
        let delivered = now.underlying * market.tables.shares(terms.deliverable);
        scan.add(
            now.risks(line.contract),
            f64::from(line.quantity) * market.multiplier,
            delivered,
        );
    }
    scan.requirement(&market.config.margin.risk_array)
}

/// Closes everything that has a quote, because margin is not met.
fn liquidate(market: &Market, now: At<'_>, env: &mut Env<'_>, closable: Closable) -> Closable {
    let held = |env: &Env<'_>| (env.account.lines, env.account.units, env.hedge.futures);
    let before = held(env);
    market.journal.because(Cause::Liquidation);
    close(market, now, env, Close::All);
    if held(env) == before {
        return closable;
    }
    env.account.liquidations += 1;
    mark(market, now, env).0
}

/// The margin requirement of lines under their earlier pairing.
struct PairedMargin {
    calls: f64,
    puts: f64,
    premium: f64,
    /// True if every comparison that led to the pairing still has the same result.
    holds: bool,
}

impl Default for PairedMargin {
    fn default() -> Self {
        Self {
            calls: 0.0,
            puts: 0.0,
            premium: 0.0,
            holds: true,
        }
    }
}

impl PairedMargin {
    fn add(&mut self, market: &Market, underlying: f64, mark: f64, terms: &Terms) {
        let pairing = &terms.pairing;
        let underlying = underlying * market.tables.shares(terms.deliverable);
        let naked = charge_above_mark(terms.call, terms.strike, underlying, &market.config.margin);
        let need = naked + mark;
        // A need of NaN does not hold.
        self.holds &= pairing.worst < need && pairing.next.partial_cmp(&need) != Some(Ordering::Less);
        let side = if terms.call { &mut self.calls } else { &mut self.puts };
        for cost in pairing.costs {
            *side += cost;
        }
        *side += pairing.left * naked;
        self.premium += pairing.left * mark;
    }

    fn requirement(&self, multiplier: f64) -> f64 {
        (self.calls.max(self.puts) + self.premium) * multiplier
    }
}

/// The margin requirement of at most N lines by the margin rule; stores the pairing.
fn pair<const N: usize>(market: &Market, now: At<'_>, env: &mut Env<'_>) -> f64 {
    let n = env.account.lines as usize;
    let mut legs = [MarginLeg::default(); N];
    for (leg, (line, terms)) in legs.iter_mut().zip(env.positions.iter().zip(&env.terms[..n])) {
        *leg = MarginLeg {
            expiry: terms.expiry,
            strike: terms.strike,
            call: terms.call,
            deliverable: market.tables.shares(terms.deliverable),
            quantity: line.quantity,
            mark: now.entry_at(terms.base).mark,
        };
    }
    env.cached.paired = true;
    requirement_and_pairs(
        &legs[..n],
        env.account.units,
        now.underlying,
        market.multiplier,
        &market.config.margin,
        |i, pairing| env.terms[i].pairing = *pairing,
    )
}
