//! The cost of opening each strategy: an upper bound computed once, and the margin rule itself.
//!
//! Opening a strategy depends on the snapshot and on the account. The part that depends on the snapshot alone
//! is computed when the tables are opened: an [`OpenCost`] for each strategy. It is an upper bound of the
//! amount that opening takes from the account, so that nearly always one multiplication shows that the
//! account has it; otherwise the margin rule decides.

use super::hedge;
use super::limits;
use super::lookup::At;
use super::market::{Basket, Market};
use super::state::{Account, View};
use crate::options::margin::{MAX_POSITIONS, MarginLeg, charge_above_mark, requirement};
use crate::options::order::Instrument;
use crate::options::portfolio_margin::Scan;
use crate::options::reason::Reason;
use crate::options::strategies::FIRST_OPEN;
use rayon::prelude::*;

/// A bound on rounding errors, as a fraction of the sums that were rounded.
const ROUNDING: f64 = 1e-9;
/// The index of allowed actions in counts by reason, after the reasons.
pub(super) const ALLOWED: u32 = Reason::COUNT as u32;

/// A strategy of one unit of size at a snapshot.
#[derive(Clone, Copy, Debug, PartialEq)]
struct OpenCost {
    /// An upper bound of what opening takes from the collateral beyond the margin requirement: prices and
    /// commission, less half the underlying bought, plus the initial margin of all the strategy's short
    /// options, taken as naked.
    takes: f64,
    needs: Needs,
}

/// The needs of a strategy at a snapshot beside money.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Needs {
    /// The number of lines.
    lines: u8,
    /// [`Reason::NoContract`] or [`Reason::NoQuote`] where that masks the strategy, or else [`ALLOWED`].
    reason: u8,
}

impl OpenCost {
    fn masked(reason: Reason, lines: u8) -> Self {
        let reason = reason as u8;
        Self {
            takes: f64::INFINITY,
            needs: Needs { lines, reason },
        }
    }

    fn new(market: &Market, t: usize, strategy: usize) -> Self {
        let Ok(basket) = market.basket(t, strategy, 1.0) else {
            return Self::masked(Reason::NoContract, 0);
        };
        let now = market.tables.at(t);
        let lines = basket.contracts().count() as u8;
        let (mut takes, mut gross, mut marks, mut hedge) = (0.0, 0.0, 0.0, 0.0);
        let mut sides = [0.0; 2];
        let config = &market.config;
        for &(instrument, quantity) in basket.legs() {
            let (price, _) = market.price(now, instrument, quantity);
            if price.is_nan() {
                return Self::masked(Reason::NoQuote, lines);
            }
            match instrument {
                Instrument::Underlying => {
                    takes += quantity * price - market.loan_value() * quantity * now.underlying;
                    hedge += hedge::margin(market, quantity, 0.0, now.underlying);
                    gross += (quantity * price).abs();
                }
                Instrument::Contract(id) => {
                    let commission = quantity.abs() * config.fills.commission;
                    takes += quantity * price * market.multiplier + commission;
                    gross += (quantity * price * market.multiplier).abs() + commission;
                    if quantity < 0.0 {
                        let leg = market.margin_leg(now, id, -1);
                        let charge = charge_above_mark(leg.call, leg.strike, now.underlying, &config.margin);
                        sides[usize::from(!leg.call)] -= quantity * charge;
                        marks -= quantity * leg.mark;
                    }
                }
            }
        }
        let margin = config.margin.initial * ((sides[0].max(sides[1]) + marks) * market.multiplier + hedge);
        Self {
            takes: match market.fills.by_size || market.scenarios.is_some() {
                true => f64::INFINITY,
                false => takes + margin + ROUNDING * (gross + margin.abs()),
            },
            needs: Needs {
                lines,
                reason: ALLOWED as u8,
            },
        }
    }
}

impl Needs {
    /// The reason that masks the strategy whatever its margin, or else [`ALLOWED`].
    fn reason(self, free_lines: u32) -> u32 {
        if u32::from(self.lines) > free_lines {
            Reason::NoRoom as u32
        } else {
            u32::from(self.reason)
        }
    }
}

/// The actions allowed, and counts of actions by the reason that masks them.
#[derive(Clone, Copy, Default)]
pub(super) struct Allowed {
    /// Allowed actions, by bit.
    pub mask: u64,
    /// Counts of eight bits for each reason and for [`ALLOWED`]: no environment has more actions than eight
    /// bits can count.
    pub counts: u64,
}

/// The costs of all strategies at all snapshots.
pub(super) struct OpenCosts {
    /// The needs of each of the S strategies at each snapshot `[T, S]`.
    needs: Vec<Needs>,
    /// The values of [`OpenCost::takes`] `[T, S]`.
    takes: Vec<f64>,
    /// The strategies that each number of free lines allows `[T, 0..=most_lines]`, if margin allows all of
    /// them.
    allowed: Vec<Allowed>,
    strategies: usize,
    /// The largest number of lines of a strategy.
    most_lines: usize,
}

impl OpenCosts {
    pub(super) fn new(market: &Market) -> Self {
        let (snapshots, strategies) = (market.tables.rows.dates.len(), market.strategies.legs.len());
        let (takes, needs): (Vec<f64>, Vec<Needs>) = (0..snapshots)
            .into_par_iter()
            .flat_map_iter(|t| (0..strategies).map(move |strategy| OpenCost::new(market, t, strategy)))
            .map(|cost| (cost.takes, cost.needs))
            .unzip();
        let most_lines = needs.iter().map(|needs| usize::from(needs.lines)).max().unwrap_or(0);
        let mut allowed = Vec::with_capacity(snapshots * (most_lines + 1));
        for t in 0..snapshots {
            for free_lines in 0..=most_lines {
                let mut of = Allowed::default();
                for (strategy, needs) in needs[t * strategies..(t + 1) * strategies].iter().enumerate() {
                    let reason = needs.reason(free_lines as u32);
                    of.counts += 1 << (8 * reason);
                    of.mask |= bit(reason == ALLOWED, strategy + FIRST_OPEN);
                }
                allowed.push(of);
            }
        }
        Self {
            takes,
            needs,
            allowed,
            strategies,
            most_lines,
        }
    }

    /// The strategies that can be opened at snapshot `t` with this number of free lines, if margin allows all
    /// of them.
    pub(super) fn allowed(&self, t: usize, free_lines: usize) -> Allowed {
        self.allowed[t * (self.most_lines + 1) + free_lines.min(self.most_lines)]
    }

    /// The strategies, by bit, that may take more at snapshot `t` than `account` has beyond its margin
    /// requirement.
    pub(super) fn doubtful(&self, market: &Market, now: At<'_>, account: &Account) -> u64 {
        if !market.config.limits.is_none() {
            return u64::MAX;
        }
        let spare = spare(market, now, account);
        let size = f64::from(account.size);
        let takes = &self.takes[account.t as usize * self.strategies..][..self.strategies];
        let mut doubtful = 0;
        for (strategy, takes) in takes.iter().enumerate() {
            doubtful |= bit(size * takes > spare, strategy);
        }
        doubtful
    }

    /// Returns whether an account surely has what a strategy of a size takes.
    pub(super) fn is_surely_met(
        &self,
        market: &Market,
        now: At<'_>,
        account: &Account,
        strategy: usize,
        size: f64,
    ) -> bool {
        size * self.takes[account.t as usize * self.strategies + strategy] <= spare(market, now, account)
    }

    /// Checks what does not depend on the account's money: contracts, quotes and free lines.
    pub(super) fn check(&self, t: usize, strategy: usize, free_lines: u32) -> Result<(), Reason> {
        let reason = self.needs[t * self.strategies + strategy].reason(free_lines);
        Reason::ALL.get(reason as usize).copied().map_or(Ok(()), Err)
    }
}

/// The bit of an action; 0 for actions beyond the bits, which spaces other than menus may have.
fn bit(is_set: bool, at: usize) -> u64 {
    u64::from(is_set).checked_shl(at as u32).unwrap_or(0)
}

/// The amount that an account surely has beyond its margin requirement.
fn spare(market: &Market, now: At<'_>, account: &Account) -> f64 {
    let held = market.loan_value() * account.units * now.underlying;
    let need = market.config.margin.initial * account.margin;
    account.cash + held - need - ROUNDING * (account.cash.abs() + held.abs() + need)
}

/// Checks that a strategy of a size can be opened beside the lines of an account; returns the reason if not.
pub(super) fn can_open_strategy(
    market: &Market,
    now: At<'_>,
    env: View<'_>,
    strategy: usize,
    size: f64,
) -> Result<(), Reason> {
    let basket = market.filled(now, market.basket(env.account.t as usize, strategy, size)?)?;
    can_open(market, now, env, &basket)
}

/// Checks that a basket can be opened beside the lines of an account; returns the reason if not.
pub(super) fn can_open(market: &Market, now: At<'_>, env: View<'_>, basket: &Basket) -> Result<(), Reason> {
    Reason::NoRoom.when(env.account.lines as usize + basket.contracts().count() > market.config.lines)?;
    affordable(market, now, env, basket)
}

/// Checks that an account has quotes, margin and limits for a basket, whatever lines are free.
pub(super) fn affordable(market: &Market, now: At<'_>, env: View<'_>, basket: &Basket) -> Result<(), Reason> {
    let (account, lines, futures) = (env.account, env.positions, env.hedge.futures);
    let mut n = account.lines as usize;
    let mut legs = [MarginLeg::default(); MAX_POSITIONS];
    for (leg, line) in legs.iter_mut().zip(&lines[..n]) {
        *leg = market.margin_leg(now, line.contract, line.quantity);
    }
    let (mut cash, mut units) = (account.cash, account.units);
    for &(instrument, quantity) in basket.legs() {
        let (price, _) = market.price(now, instrument, quantity);
        Reason::NoQuote.when(price.is_nan())?;
        match instrument {
            Instrument::Underlying => {
                cash -= quantity * price;
                units += quantity;
            }
            Instrument::Contract(id) => {
                let is_liquid = !market.fills.by_size || market.fills.allows(quantity, now.depths(id));
                Reason::Liquidity.when(!is_liquid)?;
                cash -=
                    quantity * price * market.multiplier + quantity.abs() * market.config.fills.commission;
                legs[n] = market.margin_leg(now, id, quantity as i32);
                n += 1;
            }
        }
    }
    let underlying = now.underlying;
    let rule = &market.config.margin;
    if let Some(scenarios) = &market.scenarios {
        let mut scan = Scan::new(units + futures, underlying, scenarios);
        let held = lines[..account.lines as usize]
            .iter()
            .map(|line| (line.contract, f64::from(line.quantity)));
        for (id, quantity) in held.chain(basket.contracts()) {
            let delivered =
                underlying * market.tables.shares(market.tables.contracts[id as usize].deliverable);
            scan.add(now.risks(id), quantity * market.multiplier, delivered);
        }
        let marks: f64 = legs[..n].iter().map(|leg| f64::from(leg.quantity) * leg.mark).sum();
        let equity = cash + units * underlying + marks * market.multiplier;
        let needed = scan.requirement(&rule.risk_array);
        return match equity < rule.initial * needed {
            true => Err(Reason::Margin),
            false => limits::check(market, now, env, basket, needed),
        };
    }
    let needed = requirement(&legs[..n], units, underlying, market.multiplier, rule)
        + hedge::margin(market, units, futures, underlying);
    Reason::Margin.when(cash + market.loan_value() * units * underlying < rule.initial * needed)?;
    limits::check(market, now, env, basket, needed)
}
